import { expect, test } from 'vitest';
import type { JobUsage } from '../../api/client';
import { ranksOf } from './ranks';

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
  const usage = { nodes: [{ node: 1, name: '', recent: { ranks: measured } }] };
  const ranks = ranksOf(job, usage as unknown as JobUsage).get('b')!;
  expect(ranks.map(({ cpu, memory }) => [cpu, memory])).toEqual([[0.5, 7], [null, 7]]);
});
