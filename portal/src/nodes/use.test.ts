import { describe, expect, it } from 'vitest';
import type { JobUsage, Node } from '../api/client';
import { type Asked, jobsOf, nextToAsk, useOf } from './use';

function node(name: string, jobs: string[]): Node {
  return {
    name, jobs, compute: 'local', address: '', cores: [0, 1], memory_bytes: 8e9, gpus: [], state: 'running',
    used: { cores: 2, memory_bytes: 0, gpus: 0 }, reason: null, cordoned_by: null, job: jobs[0] ?? null,
  };
}

function usage(job: string, name: string, cpu: number, age: number | null = 1): JobUsage {
  const recent = {
    time: [], cpu: [cpu], memory: [cpu * 1e9], memory_left: [null], disk_read: [null], disk_write: [1],
    machine_cpu: [9], net_receive: [5], net_send: [7], samples: [1], ranks: [],
  };
  return { job, live: true, problems: [], ranks: [], nodes: [{ node: 0, name, age, recent, whole: recent }] };
}

const at = 1_000_000;
const known = (...all: JobUsage[]): Map<string, Asked> => new Map(all.map((one) => [one.job, { at, usage: one }]));

describe('jobsOf', () => {
  it('names a job of many nodes once', () => {
    expect(jobsOf([node('n1', ['a', 'b']), node('n2', ['b'])])).toEqual(['a', 'b']);
  });
});

describe('nextToAsk', () => {
  it('takes those that were asked longest ago', () => {
    const asked = new Map<string, Asked>([['a', { at: 30, usage: null }], ['b', { at: 10, usage: null }]]);
    expect(nextToAsk(['a', 'b', 'c'], asked, 2)).toEqual(['c', 'b']);
  });
});

describe('useOf', () => {
  it('sums jobs, and counts the network once', () => {
    const use = useOf(node('n1', ['a', 'b']), known(usage('a', 'n1', 0.5), usage('b', 'n1', 1)), at);
    expect(use).toEqual({
      cores: 1.5, memory: 1.5e9, gpus: null, read: null, written: 2, received: 5, sent: 7, doubtful: false,
    });
  });
  it('sums busy GPUs of jobs that have some', () => {
    const [one, other, none] = [usage('a', 'n1', 1), usage('b', 'n1', 1), usage('c', 'n1', 1)];
    one.nodes[0]!.recent.gpu_use = [2, 0.75];
    other.nodes[0]!.recent.gpu_use = [0.5];
    expect(useOf(node('n1', ['a', 'b', 'c']), known(one, other, none), at)?.gpus).toBe(1.25);
  });
  it('marks a sum that lacks a job, and one that is old', () => {
    expect(useOf(node('n1', ['a', 'b']), known(usage('a', 'n1', 1)), at)?.doubtful).toBe(true);
    expect(useOf(node('n1', ['a']), known(usage('a', 'n1', 1)), at + 20_000)?.doubtful).toBe(true);
  });
  it('knows nothing of what is older than 45 s, of another node, or was never measured', () => {
    expect(useOf(node('n1', ['a']), known(usage('a', 'n1', 1)), at + 60_000)).toBeNull();
    expect(useOf(node('n2', ['a']), known(usage('a', 'n1', 1)), at)).toBeNull();
    expect(useOf(node('n1', ['a']), known(usage('a', 'n1', 1, null)), at)).toBeNull();
  });
});
