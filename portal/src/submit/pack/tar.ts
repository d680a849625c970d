// Writes a tar archive as docs/formats/snapshot.md says: entries sorted by name, times and owners 0, and for
// a name that ustar cannot hold a pax header before its entry.

export interface TarFile {
  name: string; // relative, with "/" between its parts
  bytes: Uint8Array;
  executable: boolean;
}

const BLOCK = 512;
const utf8 = new TextEncoder();

/** The archive of the files and of the folders that they lie in. */
export function tarOf(files: TarFile[]): Uint8Array<ArrayBuffer> {
  const entries: { key: Uint8Array; parts: Uint8Array[] }[] = [];
  for (const folder of foldersOf(files.map((file) => file.name))) {
    entries.push({ key: utf8.encode(folder), parts: headers(`${folder}/`, '5', 0o755, 0) });
  }
  for (const file of files) {
    const mode = file.executable ? 0o755 : 0o644;
    const parts = [...headers(file.name, '0', mode, file.bytes.length), file.bytes, padding(file.bytes.length)];
    entries.push({ key: utf8.encode(file.name), parts });
  }
  entries.sort((a, b) => compareBytes(a.key, b.key));
  return joined([...entries.flatMap((entry) => entry.parts), new Uint8Array(2 * BLOCK)]);
}

function foldersOf(names: string[]): Set<string> {
  const folders = new Set<string>();
  for (const name of names) {
    for (let slash = name.indexOf('/'); slash >= 0; slash = name.indexOf('/', slash + 1)) {
      folders.add(name.slice(0, slash));
    }
  }
  return folders;
}

function headers(name: string, type: string, mode: number, size: number): Uint8Array[] {
  const split = splitName(name);
  if (split) return [header(split.prefix, split.name, type, mode, size)];
  // Names are bytes: a reader whose locale is not UTF-8 would refuse to convert them.
  const record = utf8.encode(paxRecord('hdrcharset', 'BINARY') + paxRecord('path', name));
  const short = `PaxHeader/${name.replace(/[^\x20-\x7e]/g, '_').slice(-80).replace(/^\/+|\/+$/g, '')}`;
  return [
    header('', short, 'x', 0o644, record.length), record, padding(record.length),
    header('', short.slice('PaxHeader/'.length), type, mode, size),
  ];
}

/** A name of ustar: up to 100 bytes, and before them up to 155 more that end at a slash. */
function splitName(name: string): { prefix: string; name: string } | null {
  if (/[^\x20-\x7e]/.test(name)) return null;
  if (name.length <= 100) return { prefix: '', name };
  const slash = name.indexOf('/', name.length - 101);
  if (slash < 1 || slash > 155 || slash === name.length - 1) return null;
  return { prefix: name.slice(0, slash), name: name.slice(slash + 1) };
}

/** "LENGTH path=…\n", where LENGTH counts itself, too. */
function paxRecord(key: string, value: string): string {
  const rest = utf8.encode(` ${key}=${value}\n`).length;
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length += 1;
  return `${length} ${key}=${value}\n`;
}

function header(prefix: string, name: string, type: string, mode: number, size: number): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const put = (text: string, at: number) => block.set(utf8.encode(text), at);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0');
  put(name, 0);
  put(`${octal(mode, 7)}\0`, 100);
  put(`${octal(0, 7)}\0${octal(0, 7)}\0`, 108); // owner and group
  put(`${octal(size, 11)}\0${octal(0, 11)}\0`, 124); // size and time
  put(' '.repeat(8), 148); // the checksum counts itself as spaces
  put(type, 156);
  put('ustar\u000000', 257);
  put(prefix, 345);
  const sum = block.reduce((all, byte) => all + byte, 0);
  put(`${octal(sum, 6)}\0 `, 148);
  return block;
}

function padding(size: number): Uint8Array {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) {
    if (a[at] !== b[at]) return a[at]! - b[at]!;
  }
  return a.length - b.length;
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
