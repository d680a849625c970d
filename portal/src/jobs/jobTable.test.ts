import { describe, expect, it } from 'vitest';
import type { JobSummary, State } from '../api/client';
import { merge, replace, type Round, settle } from './jobTable';

const LIVE: State[] = ['Queued', 'Running'];

function job(sequence: number, state: State = 'Completed', more: Partial<JobSummary> = {}): JobSummary {
  return {
    id: `job-${sequence}`, sequence, display_name: `job ${sequence}`, experiment_name: 'e', command: 'c', state,
    reason: '', created: '2026-01-01T00:00:00Z', started: null, ended: null, node_count: 1, priority: 'normal',
    expected_start: null, expected_start_is: null, ...more,
  };
}

function round(newest: JobSummary[], live: JobSummary[], older = true): Round {
  return { newest, older, live, states: LIVE };
}

const sequences = (jobs: JobSummary[]) => jobs.map(({ sequence }) => sequence);

describe('merge', () => {
  it('keeps the list where nothing has changed', () => {
    const known = [job(3, 'Running'), job(2), job(1)];
    const { jobs, open } = merge(known, round([job(3, 'Running'), job(2)], [job(3, 'Running')]));
    expect(jobs).toBe(known);
    expect(open).toEqual([]);
  });

  it('enters new jobs in their order, also one that came between the two questions', () => {
    const known = [job(2), job(1, 'Running')];
    const { jobs } = merge(known, round([job(3), job(2)], [job(4, 'Queued'), job(1, 'Running')]));
    expect(sequences(jobs)).toEqual([4, 3, 2, 1]);
  });

  it('changes what has changed and nothing else', () => {
    const known = [job(3, 'Queued'), job(2), job(1, 'Queued')];
    const live = [job(3, 'Running'), job(1, 'Queued', { reason: 'waits' })];
    const { jobs } = merge(known, round([job(3, 'Queued')], live));
    expect(jobs.map(({ state }) => state)).toEqual(['Running', 'Completed', 'Queued']);
    expect(jobs[1]).toBe(known[1]);
    expect(jobs[2]?.reason).toBe('waits');
  });

  it('removes what is deleted among the newest, and leaves what is older alone', () => {
    const known = [job(4), job(3), job(2), job(1)];
    expect(sequences(merge(known, round([job(4), job(2)], [])).jobs)).toEqual([4, 2, 1]);
    expect(sequences(merge(known, round([job(4), job(2)], [], false)).jobs)).toEqual([4, 2]);
    expect(merge(known, round([], [], false)).jobs).toEqual([]);
  });

  it('tells which jobs have left the asked states unseen', () => {
    const known = [job(9), job(3, 'Running'), job(2, 'Queued'), job(1, 'Finalizing')];
    const { open } = merge(known, round([job(9)], [job(2, 'Queued')]));
    expect(sequences(open)).toEqual([3]);
  });

  it('asks again for one that the first answer has as running and the second has not', () => {
    const { open } = merge([job(1)], round([job(2, 'Running'), job(1)], []));
    expect(sequences(open)).toEqual([2]);
  });
});

describe('settle', () => {
  it('enters the end of a job and removes one that is deleted', () => {
    const known = [job(3, 'Running'), job(2, 'Running'), job(1)];
    const jobs = settle(known, new Map([[3, job(3, 'Failed')], [2, null]]));
    expect(jobs.map(({ sequence, state }) => [sequence, state])).toEqual([[3, 'Failed'], [1, 'Completed']]);
  });
});

describe('replace', () => {
  it('takes the whole and keeps the identity of what is the same', () => {
    const known = [job(3), job(2, 'Running'), job(1)];
    const jobs = replace(known, [job(4), job(3), job(2)]);
    expect(sequences(jobs)).toEqual([4, 3, 2]);
    expect(jobs[1]).toBe(known[0]);
  });

  it('takes a hundred thousand at once', () => {
    const many = Array.from({ length: 100_000 }, (_, i) => job(100_000 - i));
    expect(replace([], many)).toHaveLength(100_000);
  });
});
