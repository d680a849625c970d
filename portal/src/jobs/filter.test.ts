import { describe, expect, it } from 'vitest';
import type { JobSummary, State } from '../api/client';
import { experimentsOf, type Filter, readFilter, select, writeFilter } from './filter';

const ALL: Filter = { search: '', states: [], experiment: '', sort: 'newest', reverse: false };
const NOW = Date.parse('2026-01-01T01:00:00Z');

function job(sequence: number, state: State, more: Partial<JobSummary> = {}): JobSummary {
  return {
    id: `job-${sequence}`, sequence, display_name: `Job ${sequence}`, experiment_name: 'cifar', command: 'train.py',
    state, reason: '', created: '2026-01-01T00:00:00Z', started: null, ended: null, node_count: 1,
    priority: 'normal', expected_start: null, expected_start_is: null, ...more,
  };
}

const JOBS = [
  job(12, 'Queued', { reason: 'waits for 4 nodes' }),
  job(11, 'Running', { started: '2026-01-01T00:30:00Z', experiment_name: 'bert' }),
  job(2, 'Failed', { started: '2026-01-01T00:00:00Z', ended: '2026-01-01T00:45:00Z', command: 'eval.py --lr 0.1' }),
  job(1, 'Completed', { started: '2026-01-01T00:00:00Z', ended: '2026-01-01T00:00:07Z' }),
];

const shown = (filter: Partial<Filter>) =>
  select(JOBS, { ...ALL, ...filter }, NOW).shown.map(({ sequence }) => sequence);

describe('select', () => {
  it('finds jobs that have every word, in whichever of their texts', () => {
    expect(shown({ search: 'CIFAR nodes' })).toEqual([12]);
    expect(shown({ search: '  --lr  job ' })).toEqual([2]);
    expect(shown({ search: 'job-1' })).toEqual([12, 11, 1]);
    expect(shown({ search: '.*' })).toEqual([]);
  });

  it('filters by states and experiment, and counts the states all the same', () => {
    const { shown: some, counts } = select(JOBS, { ...ALL, states: ['Failed', 'Queued'], experiment: 'cifar' }, NOW);
    expect(some.map(({ sequence }) => sequence)).toEqual([12, 2]);
    expect(Object.fromEntries(counts)).toEqual({ Queued: 1, Failed: 1, Completed: 1 });
  });

  it('sorts', () => {
    expect(shown({ reverse: true })).toEqual([1, 2, 11, 12]);
    expect(shown({ sort: 'name' })).toEqual([1, 2, 11, 12]);
    expect(shown({ sort: 'ran' })).toEqual([2, 11, 1, 12]);
    expect(shown({ sort: 'state', reverse: true })).toEqual([2, 1, 11, 12]);
  });

  it('takes a list of jobs as it is where nothing is asked', () => {
    expect(select(JOBS, ALL, NOW).shown).toEqual(JOBS);
  });
});

describe('the address', () => {
  it('gives back what was written, and keeps what others wrote', () => {
    const filter: Filter = {
      search: 'a & b=c %', states: ['Running', 'Failed'], experiment: 'é/x', sort: 'ran', reverse: true,
    };
    const written = writeFilter(new URLSearchParams('other=1'), filter);
    expect(readFilter(new URLSearchParams(written.toString()))).toEqual(filter);
    expect(written.get('other')).toBe('1');
    expect(writeFilter(written, ALL).toString()).toBe('other=1');
  });

  it('passes over what it does not know', () => {
    const filter = readFilter(new URLSearchParams('state=Failed,<b>&sort=-constructor'));
    expect(filter).toEqual({ ...ALL, states: ['Failed'] });
  });
});

describe('experimentsOf', () => {
  it('names each once', () => {
    expect(experimentsOf(JOBS)).toEqual(['bert', 'cifar']);
  });
});
