const LATER = 60_000; // milliseconds: a browser may begin to read after the click has returned

/** Has the browser keep the text, given in parts, as a file. */
export function save(name: string, text: string[], type: string): void {
  const address = URL.createObjectURL(new Blob(text, { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), LATER);
}
