import { describe, expect, it } from 'vitest';
import { countsOf, diffLines, type Edit, hunksOf } from './diff';

const before = (edits: Edit[]) => edits.filter((edit) => edit.kind !== 'added').map((edit) => edit.text);
const after = (edits: Edit[]) => edits.filter((edit) => edit.kind !== 'removed').map((edit) => edit.text);
const written = (edits: Edit[]) =>
  edits.map((edit) => ({ same: ' ', added: '+', removed: '-' })[edit.kind] + edit.text).join('');

/** The length of the longest common subsequence, by the table. */
function common(a: string[], b: string[]): number {
  let row = new Array<number>(b.length + 1).fill(0);
  for (const x of a) {
    const next = [0];
    b.forEach((y, index) => next.push(x === y ? row[index]! + 1 : Math.max(row[index + 1]!, next[index]!)));
    row = next;
  }
  return row.at(-1)!;
}

describe('diffLines', () => {
  it('tells what was put in, taken out and changed', () => {
    expect(written(diffLines('a\nb\nc\n', 'a\nx\nc\nd\n'))).toBe(' a-b+x c+d');
    expect(written(diffLines('', 'a\n'))).toBe('+a');
    expect(written(diffLines('a\n', ''))).toBe('-a');
    expect(written(diffLines('a\nb', 'a\nb\n'))).toBe(' a b');
  });

  it('numbers lines in both texts', () => {
    expect(diffLines('a\nb\nz', 'b\nnew\nz').map((edit) => [edit.before, edit.after])).toEqual([
      [1, null], [2, 1], [null, 2], [3, 3],
    ]);
  });

  it('is a shortest one, of any texts', () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    for (let round = 0; round < 300; round += 1) {
      const make = () => Array.from({ length: 1 + random(14) }, () => 'abcd'[random(4)]!);
      const [a, b] = [make(), make()];
      const edits = diffLines(a.join('\n'), b.join('\n'));
      expect(before(edits)).toEqual(a);
      expect(after(edits)).toEqual(b);
      expect(edits.filter((edit) => edit.kind === 'same').length).toBe(common(a, b));
      for (const edit of edits) {
        if (edit.before) expect(a[edit.before - 1]).toBe(edit.text);
        if (edit.after) expect(b[edit.after - 1]).toBe(edit.text);
      }
    }
  });

  it('takes texts with nothing in common for replaced, in little time', () => {
    const many = (word: string) => Array.from({ length: 20_000 }, (_, index) => `${word}${index}`).join('\n');
    expect(countsOf(diffLines(many('a'), many('b')))).toEqual({ added: 20_000, removed: 20_000 });
  });
});

describe('hunksOf', () => {
  it('hides what is far from changes', () => {
    const lines = Array.from({ length: 30 }, (_, index) => `${index}`);
    const hunks = hunksOf(diffLines(lines.join('\n'), lines.with(10, 'x').join('\n')));
    expect(hunks.map((hunk) => ('hidden' in hunk ? -hunk.hidden.length : hunk.edits.length))).toEqual([-7, 8, -16]);
  });
});
