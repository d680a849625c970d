import { expect, test } from 'vitest';
import type { JobUsage } from '../../api/client';
import { countsOf, endOf, ranksOf, stateWord } from './ranks';

const job = {
  world_size: 4,
  node_count: 2,
  nodes: ['a', 'b'],
  failures: [
    { rank: 2, node: 'b', what: 'failed with exit code 1', consequence: false },
    { rank: null, node: 'b', what: 'left', consequence: true },
    { rank: 3, node: 'b', what: 'was stopped', consequence: true },
    { rank: 2, node: 'b', what: 'again', consequence: true },
  ],
};

test('ranks stand with their nodes before anything is measured', () => {
  const ranks = ranksOf(job);
  const numbers = [...ranks].map(([node, there]) => [node, there.map(({ rank }) => rank)]);
  expect(numbers).toEqual([['a', [0, 1]], ['b', [2, 3]]]);
  expect(ranks.get('b')!.map(({ failure }) => failure)).toEqual([
    { what: 'failed with exit code 1', consequence: false },
    { what: 'was stopped', consequence: true },
  ]);
});

test('the newest samples are what a rank uses now', () => {
  const column = (rank: number, cpu: (number | null)[]) => ({ rank, cpu, memory: [1, 7] });
  const measured = [column(2, [1, 0.5]), column(9, [1]), column(3, [])];
  const states = [2, 3].map((rank) => ({ rank, node: 'b', state: 'running' }));
  const usage = { nodes: [{ node: 1, name: '', recent: { ranks: measured } }], ranks: states };
  const ranks = ranksOf(job, usage as unknown as JobUsage).get('b')!;
  expect(ranks.map(({ cpu, memory }) => [cpu, memory])).toEqual([[0.5, 7], [null, 7]]);
});

test('a rank that has ended says how and when, and no last use as if it ran', () => {
  const since = '2026-11-30T12:03:11.000Z';
  const usage = {
    nodes: [{ node: 0, name: 'a', recent: { ranks: [0, 1].map((rank) => ({ rank, cpu: [1], memory: [7] })) } }],
    ranks: [
      { rank: 0, node: 'a', state: 'running', since },
      { rank: 1, node: 'a', state: 'ended', since, code: 0 },
      { rank: 2, node: 'b', state: 'ended', since, signal: 9 },
      { rank: 3, node: 'b', state: 'unknown' },
    ],
  };
  const ranks = [...ranksOf({ ...job, failures: [] }, usage as unknown as JobUsage).values()].flat();
  expect(ranks.map(stateWord)).toEqual(['running', 'ended', 'ended', 'not known']);
  expect(ranks.map(({ cpu }) => cpu)).toEqual([1, null, null, null]);
  expect(ranks.map(endOf).map((end) => end.split(',')[0])).toEqual(['', 'exit code 0', 'signal 9', '']);
  expect(countsOf(ranks)).toBe('1 running, 2 ended, 1 not known');
});

test('what the service has not told is not known, and without nodes no rank has started', () => {
  const states = (nodes: string[], usage?: unknown) =>
    [...ranksOf({ ...job, nodes, failures: [] }, usage as JobUsage | undefined).values()].flat().map(({ state }) => state);
  expect(states(['a', 'b'], { nodes: [] })).toEqual(Array(4).fill('unknown'));
  expect(states(['a', 'b'])).toEqual(Array(4).fill(null));
  expect(states([])).toEqual(Array(4).fill('not_started'));
});
