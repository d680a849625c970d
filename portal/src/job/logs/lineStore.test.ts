import { expect, test } from 'vitest';
import type { Schemas } from '../../api/client';
import type { FollowLine } from '../../api/follow';
import { LineStore, LONGEST } from './lineStore';

const TIME = '2026-11-29T14:54:04.659670Z';

function out(text: string, more: Partial<Schemas['OutputLine']> = {}): FollowLine {
  return { type: 'output', cursor: '1', time: TIME, rank: 0, stream: 'stdout', text, ...more };
}

function textsOf(store: LineStore): string[] {
  return Array.from({ length: store.end - store.first }, (_, at) => store.text(store.first + at));
}

test('output and states become rows, what is no output does not', () => {
  const store = new LineStore();
  store.add([
    { type: 'state', cursor: '1', time: TIME, state: 'Running', reason: '2 processes' },
    out('a', { rank: 3 }),
    out('{"loss": 1}', { stream: 'metrics' }),
    out('b', { stream: 'stderr' }),
  ]);
  expect(textsOf(store)).toEqual(['Running: 2 processes', 'a', 'b']);
  const { first } = store;
  expect([store.source(first), store.rank(first + 1), store.source(first + 2)]).toEqual(['state', 3, 'stderr']);
  expect(store.highestRank).toBe(3);
  expect(store.time(first + 1)).toBe(Date.parse(TIME));
});

test('a progress bar is one row, which shows its last state', () => {
  const store = new LineStore();
  const bar = (text: string) => out(text, { stream: 'stderr', partial: true });
  store.add([bar('\r 10 %'), out('between'), bar('\r 20 %')]);
  expect(textsOf(store)).toEqual([' 20 %', 'between']);
  expect([...store.takeChanged()]).toEqual([store.first]);
  store.add([bar('\r 30 %\r'), bar('100'), out('', { stream: 'stderr' }), out('next', { stream: 'stderr' })]);
  expect(textsOf(store)).toEqual(['100', 'between', 'next']);
  const error = (text: string) => out(text, { stream: 'stderr' });
  store.add([bar('\r 1 %'), error('joins'), bar('\r 2 %'), out('a'), error('own')]);
  expect(textsOf(store).slice(3)).toEqual([' 1 %joins', ' 2 %', 'a', 'own']);
});

test('pieces of a long line join, and the end of an endless one is cut', () => {
  const store = new LineStore();
  store.add([out('abc', { partial: true }), out('def')]);
  for (let piece = 0; piece < 100; piece += 1) store.add([out('x'.repeat(1000), { partial: true })]);
  const { first } = store;
  expect(store.text(first)).toBe('abcdef');
  expect(store.text(first + 1)).toHaveLength(LONGEST);
  expect(store.isCut(first + 1)).toBe(true);
  store.add([out('\rnew')]);
  expect(textsOf(store)).toEqual(['abcdef', 'new']);
  expect(store.isCut(first + 1)).toBe(false);
});

test('only the newest rows are kept, by count and by characters, under their numbers', () => {
  const few = new LineStore(3);
  const { first } = few;
  few.add([out('bar', { partial: true, rank: 9 }), out('a'), out('b'), out('c'), out('d')]);
  expect([few.first - first, few.end - first]).toEqual([2, 5]);
  expect(textsOf(few)).toEqual(['b', 'c', 'd']);
  few.add([out(' goes on', { rank: 9 })]); // its row is gone
  expect(textsOf(few)).toEqual(['c', 'd', 'bar goes on']);
  const small = new LineStore(100, 10);
  small.add([out('12345'), out('6789'), out('abcdef')]);
  expect(textsOf(small)).toEqual(['6789', 'abcdef']);
});

test('colours go on into the next line of the same rank and stream', () => {
  const store = new LineStore();
  store.add([out('\x1b[31mred'), out('other', { rank: 1 }), out('still\x1b[0m'), out('plain')]);
  const { first } = store;
  expect(store.text(first + 2)).toBe('\x1b[38;5;1mstill\x1b[0m');
  expect(textsOf(store).slice(3)).toEqual(['plain']);
  expect([store.plain(first + 1), store.plain(first + 2)]).toEqual(['other', 'still']);
});

/** The texts of lines that are read backwards, in pages that begin at `cuts`. */
function backwards(lines: FollowLine[], ...cuts: number[]): string[] {
  const store = new LineStore();
  store.add(lines.slice(cuts[0]));
  cuts.forEach((cut, at) => store.prepend(lines.slice(cuts[at + 1] ?? 0, cut), cuts[at + 1] ? '1' : null));
  return textsOf(store);
}

function forwards(lines: FollowLine[]): string[] {
  const store = new LineStore();
  store.add(lines);
  return textsOf(store);
}

test('lines that are read backwards are those that are read forwards, wherever pages part them', () => {
  const error = (text: string, more = {}) => out(text, { stream: 'stderr', ...more });
  const piece = (text: string) => error(text, { partial: true });
  const lines = [
    out('\x1b[31mred'), out('still'), out('no more\x1b[0m'), out('plain'), piece('\r 10 %'), piece('\r 20 %'),
    piece('\r 30 %'), error(' done'), piece('abc'), piece('def'), error('ghi'), out('\x1b[1mbold', { rank: 1 }),
    out('and on', { rank: 1 }), out('last'),
  ];
  for (let cut = 1; cut < lines.length; cut += 1) {
    expect(backwards(lines, cut), `cut before ${cut}`).toEqual(forwards(lines));
    for (let other = 1; other < cut; other += 1) {
      expect(backwards(lines, cut, other), `cut before ${other} and ${cut}`).toEqual(forwards(lines));
    }
  }
});

test('processes that start anew do not go on with lines of those before them, read backwards too', () => {
  const start: FollowLine = { type: 'state', cursor: '1', time: TIME, state: 'Starting', reason: '' };
  const lines = [out('\x1b[31mhalf', { partial: true }), start, out('whole')];
  expect(backwards(lines, 2)).toEqual(['\x1b[31mhalf', 'Starting: ', 'whole']);
  expect(backwards(lines, 2, 1)).toEqual(['\x1b[31mhalf', 'Starting: ', 'whole']);
});

test('what is too much leaves at the other side, and is asked for where it was', () => {
  const store = new LineStore(3);
  const line = (text: string) => out(text, { cursor: text });
  store.add([line('3'), line('4'), line('5')]);
  store.beginsAfter('2');
  store.prepend([line('1'), line('2')], null);
  expect([textsOf(store), store.before, store.after]).toEqual([['1', '2', '3'], null, '3']);
  expect([store.number(store.first), store.numbered(3), store.rowAt('2')]).toEqual([
    1, store.first + 2, store.first + 1,
  ]);
  store.add([line('4')]);
  expect([textsOf(store), store.before, store.after]).toEqual([['2', '3', '4'], '1', '4']);
  expect(store.number(store.first)).toBe(2);
});
