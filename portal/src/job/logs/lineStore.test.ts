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
  expect([store.source(0), store.rank(1), store.source(2), store.highestRank]).toEqual(['state', 3, 'stderr', 3]);
  expect(store.time(1)).toBe(Date.parse(TIME));
});

test('a progress bar is one row, which shows its last state', () => {
  const store = new LineStore();
  const bar = (text: string) => out(text, { stream: 'stderr', partial: true });
  store.add([bar('\r 10 %'), out('between'), bar('\r 20 %')]);
  expect(textsOf(store)).toEqual([' 20 %', 'between']);
  expect([...store.takeChanged()]).toEqual([0]);
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
  expect(store.text(0)).toBe('abcdef');
  expect(store.text(1)).toHaveLength(LONGEST);
  expect(store.isCut(1)).toBe(true);
  store.add([out('\rnew')]);
  expect(textsOf(store)).toEqual(['abcdef', 'new']);
  expect(store.isCut(1)).toBe(false);
});

test('only the newest rows are kept, by count and by characters, under their numbers', () => {
  const few = new LineStore(3);
  few.add([out('bar', { partial: true, rank: 9 }), out('a'), out('b'), out('c'), out('d')]);
  expect([few.first, few.end]).toEqual([2, 5]);
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
  expect(store.text(2)).toBe('\x1b[38;5;1mstill\x1b[0m');
  expect([store.plain(1), store.plain(2), store.text(3)]).toEqual(['other', 'still', 'plain']);
});
