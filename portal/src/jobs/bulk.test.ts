// @vitest-environment jsdom
import { expect, it } from 'vitest';
import type { JobSummary } from '../api/client';
import { doAll, whatCancelEnds } from './bulk';

const JOBS = Array.from({ length: 9 }, (_, i) => ({ id: `job-${i}` }) as JobSummary);

it('does all, a few at a time, and names those that failed', async () => {
  let now = 0;
  let most = 0;
  const told: number[] = [];
  const action = async (id: string) => {
    most = Math.max(most, ++now);
    await Promise.resolve();
    now -= 1;
    if (id === 'job-3' || id === 'job-7') throw new Error(`${id} is gone`);
    return id.toUpperCase();
  };
  const { done, failed } = await doAll(JOBS, action, (through) => told.push(through));
  expect(done.map(({ result }) => result)).toEqual(['JOB-0', 'JOB-1', 'JOB-2', 'JOB-4', 'JOB-5', 'JOB-6', 'JOB-8']);
  expect(failed.map(({ job, message }) => [job.id, message])).toEqual([
    ['job-3', 'job-3 is gone'],
    ['job-7', 'job-7 is gone'],
  ]);
  expect(most).toBe(4);
  expect(told).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

it('says what canceling ends', () => {
  const jobs = ['Running', 'Queued', 'Finalizing', 'Failed'].map((state) => ({ state }) as JobSummary);
  expect(whatCancelEnds(jobs)).toEqual([
    '2 jobs run now and will be stopped.',
    '1 job waits and will not start.',
    '1 job has ended and stays as it is.',
  ]);
  expect(whatCancelEnds(jobs.slice(0, 1))).toEqual(['1 job runs now and will be stopped.']);
});
