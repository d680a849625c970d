import { expect, test } from 'vitest';
import type { Schemas } from '../../api/client';
import type { FollowLine } from '../../api/follow';
import { LineStore } from './lineStore';
import { causeRow, chosen, LineView, matches, placeOf, searchFor } from './lineView';

function out(text: string, more: Partial<Schemas['OutputLine']> = {}): FollowLine {
  return { type: 'output', cursor: '1', time: '2026-11-29T14:54:04Z', rank: 0, stream: 'stdout', text, ...more };
}

test('a view follows lines that come, change and leave', () => {
  const store = new LineStore(4);
  const view = new LineView(store, matches(store, searchFor('AB')!));
  const step = (...lines: FollowLine[]) => {
    store.add(lines);
    view.update(store.takeChanged());
    return view.rows.map(store.text);
  };
  expect(step(out('ab 1'), out('no', { partial: true, rank: 1 }), out('b a'))).toEqual(['ab 1']);
  expect(step(out('\rxab', { partial: true, rank: 1 }))).toEqual(['ab 1', 'xab']);
  expect(step(out('\rnot any more', { rank: 1 }))).toEqual(['ab 1']);
  expect(step(out('2 Ab'), out('tail'))).toEqual(['2 Ab']);
});

test('a choice keeps states', () => {
  const store = new LineStore();
  store.add([
    { type: 'state', cursor: '1', time: '', state: 'Running', reason: '' },
    out('a', { rank: 1 }),
    out('b', { rank: 1, stream: 'stderr' }),
    out('c'),
  ]);
  const offset = (row: number) => row - store.first;
  expect(new LineView(store, chosen(store, { rank: 1, source: null })).rows.map(offset)).toEqual([0, 1, 2]);
  expect(new LineView(store, chosen(store, { rank: null, source: 'stdout' })).rows.map(offset)).toEqual([0, 1, 3]);
});

test('a search takes its text literally', () => {
  const found = [...'a.b axb A.B'.matchAll(searchFor('a.b')!)].map((match) => match.index);
  expect(found).toEqual([0, 8]);
  expect(placeOf([2, 4, 6], 5)).toBe(2);
});

function causeOf(lines: string[]): string | null {
  const store = new LineStore();
  store.add(lines.map((text) => out(text, { rank: 2, stream: 'stderr' })));
  store.add([out('other', { rank: 1, stream: 'stderr' }), out('bye', { rank: 2 })]);
  const { row } = causeRow(store, 2);
  return row === null ? null : store.text(row);
}

test('the cause begins with the last traceback, or with the first of its chain', () => {
  const trace = 'Traceback (most recent call last):';
  const lines = ['warning', trace + ' old', '  File "a"', 'Error: old', 'between'];
  expect(causeOf([...lines, trace, '  File "b"', 'Error: b', 'ends'])).toBe(trace);
  const chain = 'During handling of the above exception, another exception occurred:';
  expect(causeOf([...lines, trace + ' 1', 'Error: 1', '', chain, '', trace + ' 2', 'E 2'])).toBe(trace + ' 1');
});

test('without a traceback the cause begins with the last lines to stderr, or is the last line', () => {
  expect(causeOf(Array.from({ length: 50 }, (_, at) => `line ${at}`))).toBe('line 30');
  expect(causeOf([])).toBe('bye');
  expect(causeRow(new LineStore(), 0)).toEqual({ row: null, isSure: true });
});

test('the cause is sure once what begins it is kept, or the rank has printed much since', () => {
  const error = (text: string) => out(text, { stream: 'stderr' });
  const store = new LineStore();
  store.add([error('  File "b"'), error('Error: b')]);
  store.beginsAfter('1-1-0');
  expect(causeRow(store, 0).isSure).toBe(false);
  store.prepend([error('Traceback (most recent call last):')], '1-0-0');
  expect(causeRow(store, 0).isSure).toBe(false); // It may be of a chain.
  store.prepend([error('before')], '1-0-0');
  expect(causeRow(store, 0)).toEqual({ row: store.first + 1, isSure: true });
  store.add(Array.from({ length: 2_000 }, () => out('much')));
  expect(causeRow(store, 0)).toEqual({ row: store.first + 1, isSure: true });
  store.add(Array.from({ length: 2_000 }, () => error('much')));
  expect(causeRow(store, 0)).toEqual({ row: store.end - 20, isSure: true });
});

test('a view takes in what comes before its rows, and leaves what goes behind them', () => {
  const store = new LineStore(4);
  const view = new LineView(store, matches(store, searchFor('a')!));
  store.add([out('a 3'), out('4'), out('a 5')]);
  view.update(store.takeChanged());
  store.prepend([out('a 1'), out('a 2')], null);
  view.update(store.takeChanged());
  expect(view.rows.map(store.text)).toEqual(['a 1', 'a 2', 'a 3']);
});
