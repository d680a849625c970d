// The table of all jobs that the page holds, and how a small answer of the service brings it up to date.
import type { JobSummary, State } from '../api/client';

/** What was asked in one round, in this order: first the newest jobs, then those in states that have not ended. */
export interface Round {
  /** Newest first, without a gap. */
  newest: JobSummary[];
  /** Whether there are jobs that are older than the last of `newest`. */
  older: boolean;
  /** All jobs that are in one of `states`. */
  live: JobSummary[];
  states: readonly State[];
}

export interface Merged {
  jobs: JobSummary[];
  /** Jobs that were in one of the asked states and are no more: they have ended, or are deleted. */
  open: JobSummary[];
}

/** Brings jobs, newest first, up to date. What has not changed keeps its identity, the list included. */
export function merge(known: JobSummary[], round: Round): Merged {
  const told = new Map<number, JobSummary>();
  for (const job of round.newest) told.set(job.sequence, job);
  for (const job of round.live) told.set(job.sequence, job); // It was asked later, and so it wins.
  const oldest = round.older ? (round.newest.at(-1)?.sequence ?? 0) : 0;
  const deleted = (job: JobSummary) => job.sequence >= oldest && !told.has(job.sequence);

  const jobs = update(known, told, deleted);
  const asked = new Set(round.states);
  const live = new Set(round.live.map((job) => job.sequence));
  return { jobs, open: jobs.filter((job) => asked.has(job.state) && !live.has(job.sequence)) };
}

/** Enters what single questions answered: the job as it is now, or null for one that is deleted. */
export function settle(known: JobSummary[], answers: Map<number, JobSummary | null>): JobSummary[] {
  const told = new Map<number, JobSummary>();
  for (const [sequence, job] of answers) if (job) told.set(sequence, job);
  return update(known, told, (job) => answers.get(job.sequence) === null);
}

/** Enters a whole answer, newest first. */
export function replace(known: JobSummary[], whole: JobSummary[]): JobSummary[] {
  const told = new Map(whole.map((job) => [job.sequence, job]));
  return update(known, told, (job) => !told.has(job.sequence));
}

function update(
  known: JobSummary[],
  told: Map<number, JobSummary>,
  gone: (job: JobSummary) => boolean,
): JobSummary[] {
  let changed = false;
  const kept: JobSummary[] = [];
  const fresh = new Map(told);
  for (const job of known) {
    fresh.delete(job.sequence);
    if (gone(job)) {
      changed = true;
      continue;
    }
    const now = told.get(job.sequence);
    const next = now && !same(job, now) ? now : job;
    changed ||= next !== job;
    kept.push(next);
  }
  if (fresh.size > 0) {
    kept.push(...fresh.values());
    kept.sort((a, b) => b.sequence - a.sequence);
    changed = true;
  }
  return changed ? kept : known;
}

function same(a: JobSummary, b: JobSummary): boolean {
  return (Object.keys(b) as (keyof JobSummary)[]).every((key) => a[key] === b[key]);
}
