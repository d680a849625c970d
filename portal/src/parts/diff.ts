// The difference of two texts by lines: Myers, "An O(ND) Difference Algorithm and Its Variations", 1986.

export interface Edit {
  kind: 'same' | 'removed' | 'added';
  before: number | null; // the line's number in the text before, from 1
  after: number | null;
  text: string;
}

const MOST_EDITS = 2_000; // beyond it, texts have so little in common that all lines count as replaced

export function diffLines(before: string, after: string): Edit[] {
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const same = (index: number, offset: number): Edit => ({
    kind: 'same', before: index + 1, after: index + offset + 1, text: a[index]!,
  });
  const edits: Edit[] = [];
  for (let index = 0; index < head; index += 1) edits.push(same(index, 0));
  for (const edit of middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail), head)) edits.push(edit);
  for (let index = a.length - tail; index < a.length; index += 1) edits.push(same(index, b.length - a.length));
  return edits;
}

function split(text: string): string[] {
  if (text === '') return [];
  return text.replace(/\n$/, '').split('\n');
}

/** The edits of what lies between the same beginning, of `head` lines, and the same end. */
function middle(a: string[], b: string[], head: number): Edit[] {
  const removed = (x: number): Edit => ({ kind: 'removed', before: head + x + 1, after: null, text: a[x]! });
  const added = (y: number): Edit => ({ kind: 'added', before: null, after: head + y + 1, text: b[y]! });
  const trace = search(a, b);
  if (!trace) return [...a.map((_, x) => removed(x)), ...b.map((_, y) => added(y))];
  const edits: Edit[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const { down, from } = step(trace[d]!, x - y, d);
    while (x > from) {
      x -= 1;
      y -= 1;
      edits.push({ kind: 'same', before: head + x + 1, after: head + y + 1, text: a[x]! });
    }
    if (d === 0) break;
    if (down) edits.push(added((y -= 1)));
    else edits.push(removed((x -= 1)));
  }
  return edits.reverse();
}

/**
 * How the d-th edit leads onto diagonal k = x - y: down, a line of `b` that is added, or to the right, and to
 * which x. `reached`: the farthest x on each diagonal with d - 1 edits, at index k + d + 1.
 */
function step(reached: Int32Array, k: number, d: number): { down: boolean; from: number } {
  if (d === 0) return { down: false, from: 0 };
  const left = reached[k - 1 + d + 1]!;
  const above = reached[k + 1 + d + 1]!;
  const down = k === -d || (k !== d && left < above);
  return { down, from: down ? above : left + 1 };
}

/** For each number of edits, up to the one that reaches the ends, `reached` as above; null: more than MOST_EDITS. */
function search(a: string[], b: string[]): Int32Array[] | null {
  const trace: Int32Array[] = [];
  let reached = new Int32Array(3);
  for (let d = 0; d <= Math.min(a.length + b.length, MOST_EDITS); d += 1) {
    trace.push(reached);
    const next = new Int32Array(2 * d + 5);
    for (let k = -d; k <= d; k += 2) {
      let x = step(reached, k, d).from;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      next[k + d + 2] = x;
      if (x >= a.length && x - k >= b.length) return trace;
    }
    reached = next;
  }
  return null;
}

export interface Counts {
  added: number;
  removed: number;
}

export function countsOf(edits: Edit[]): Counts {
  const count = (kind: string) => edits.filter((edit) => edit.kind === kind).length;
  return { added: count('added'), removed: count('removed') };
}

export type Hunk = { edits: Edit[] } | { hidden: Edit[] };

/** Hides what is the same and farther than `around` lines from a change. */
export function hunksOf(edits: Edit[], around = 3): Hunk[] {
  const near = new Uint8Array(edits.length);
  edits.forEach((edit, index) => {
    if (edit.kind !== 'same') near.fill(1, Math.max(0, index - around), index + around + 1);
  });
  const hunks: Hunk[] = [];
  let from = 0;
  for (let index = 1; index <= edits.length; index += 1) {
    if (index < edits.length && near[index] === near[from]) continue;
    const part = edits.slice(from, index);
    hunks.push(near[from] || part.length < 4 ? { edits: part } : { hidden: part });
    from = index;
  }
  return hunks;
}
