// Reads tables of comma or tab separated values (RFC 4180): a field in quotes may hold separators, line ends
// and quotes, which are doubled.

export interface Table {
  rows: string[][];
  more: boolean; // than were asked for
}

/** Reads at most `mostRows` rows. A quote that is never closed takes the rest of the text. */
export function readTable(text: string, separator: ',' | '\t' | ';', mostRows: number): Table {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = text.startsWith('\uFEFF') ? 1 : 0;
  while (at < text.length) {
    let field = '';
    if (text[at] === '"') {
      [field, at] = quoted(text, at);
    }
    let end = at;
    while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r') end += 1;
    row.push(field + text.slice(at, end));
    at = end + 1;
    if (text[end] === separator && at < text.length) continue;
    if (text[end] === separator) row.push('');
    if (text[end] === '\r' && text[at] === '\n') at += 1;
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
    if (rows.length === mostRows) return { rows, more: at < text.length };
  }
  return { rows, more: false };
}

/** The text in the quotes that open at `at`, and where what follows them begins. */
function quoted(text: string, at: number): [string, number] {
  let field = '';
  let from = at + 1;
  for (;;) {
    const quote = text.indexOf('"', from);
    if (quote < 0) return [field + text.slice(from), text.length];
    field += text.slice(from, quote);
    if (text[quote + 1] !== '"') return [field, quote + 1];
    field += '"';
    from = quote + 2;
  }
}

/** What separates the fields of a file: tabs in .tsv, else what its first line has more of. */
export function separatorOf(path: string, text: string): ',' | '\t' | ';' {
  if (path.toLowerCase().endsWith('.tsv')) return '\t';
  const first = text.slice(0, 4096).split('\n', 1)[0] ?? '';
  const count = (separator: string) => first.split(separator).length;
  return count(';') > count(',') ? ';' : ',';
}
