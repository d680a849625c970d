// Does the same thing to many jobs, some at a time, and tells by name what did not work.
import type { JobSummary } from '../api/client';
import { hasEnded } from '../api/queries';

export interface Failure {
  job: JobSummary;
  message: string;
}

export interface Outcome<T> {
  done: { job: JobSummary; result: T }[];
  failed: Failure[];
}

const AT_ONCE = 4;

/** `onProgress` is told how many are through. The outcome has the order of `jobs`. */
export async function doAll<T>(
  jobs: JobSummary[],
  action: (job: string) => Promise<T>,
  onProgress: (through: number) => void,
): Promise<Outcome<T>> {
  const outcomes: Outcome<T>[] = jobs.map(() => ({ done: [], failed: [] }));
  let next = 0;
  let through = 0;
  const work = async () => {
    while (next < jobs.length) {
      const index = next++;
      const job = jobs[index]!;
      try {
        outcomes[index]!.done.push({ job, result: await action(job.id) });
      } catch (error) {
        outcomes[index]!.failed.push({ job, message: (error as Error).message });
      }
      onProgress(++through);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { done: outcomes.flatMap(({ done }) => done), failed: outcomes.flatMap(({ failed }) => failed) };
}

/** "1 job", "12,345 jobs". */
export function countOf(jobs: number): string {
  return `${jobs.toLocaleString('en-US')} ${jobs === 1 ? 'job' : 'jobs'}`;
}

/** What canceling these jobs would end, in sentences. */
export function whatCancelEnds(jobs: JobSummary[]): string[] {
  const ended = jobs.filter((job) => hasEnded(job.state)).length;
  const waiting = jobs.filter((job) => job.state === 'Queued').length;
  const running = jobs.length - ended - waiting;
  const stay = ended === 1 ? 'has ended and stays as it is' : 'have ended and stay as they are';
  return [
    running > 0 && `${countOf(running)} ${running === 1 ? 'runs' : 'run'} now and will be stopped.`,
    waiting > 0 && `${countOf(waiting)} ${waiting === 1 ? 'waits' : 'wait'} and will not start.`,
    ended > 0 && `${countOf(ended)} ${stay}.`,
  ].filter((line) => line !== false);
}
