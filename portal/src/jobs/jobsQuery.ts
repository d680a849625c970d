// Keeps the table of jobs live at a low cost for the service: the whole once, and then small questions.
import { queryOptions } from '@tanstack/react-query';
import { answer, type JobSummary, service, type State } from '../api/client';
import { LIVE, queries } from '../api/queries';
import { merge, replace, settle } from './jobTable';

export interface JobTable {
  jobs: JobSummary[];
  /** When all were asked for; 0: the first page alone has come so far. */
  wholeAt: number;
  askedAt: number;
  queuedAt: number;
}

const FIRST = 200; // enough to fill a screen at once
const MOST = 100_000; // the most that the service tells at once
const NEWEST = 100;
const GAP = 1_000; // jobs of a page where more than the newest are new
const SINGLY = 20; // more jobs that have ended than these are asked for as a whole
const WHOLE_EVERY = 300_000; // milliseconds
const ABSENCE = 30_000; // milliseconds without a question, as of a window that was hidden
const PER_QUEUED = 8; // milliseconds: a long queue is asked for less often

const PLACED: readonly State[] = ['Preparing', 'Provisioning', 'Starting', 'Running', 'Finalizing'];
const QUERY_KEY = ['job-table'];

export const jobsQuery = queryOptions({
  queryKey: QUERY_KEY,
  queryFn: () => ask(queries.getQueryData<JobTable>(QUERY_KEY)),
  structuralSharing: false, // The merging keeps what has not changed.
  refetchInterval: ({ state }) => (state.data?.wholeAt === 0 ? 1 : LIVE),
});

/** Asks at once what has become of jobs that the page did something with. */
export function askAgain(): void {
  queries.setQueryData<JobTable>(QUERY_KEY, (table) => table && { ...table, queuedAt: 0 });
  void queries.invalidateQueries({ queryKey: QUERY_KEY });
}

async function ask(table: JobTable | undefined): Promise<JobTable> {
  const now = Date.now();
  if (!table) {
    const jobs = await summaries({ limit: FIRST });
    return { jobs, wholeAt: jobs.length < FIRST ? now : 0, askedAt: now, queuedAt: now };
  }
  const stale = now - table.wholeAt > WHOLE_EVERY || now - table.askedAt > ABSENCE;
  return (stale ? undefined : await askWhatChanges(table, now)) ?? (await askWhole(table, now));
}

async function askWhole(table: JobTable, now: number): Promise<JobTable> {
  const jobs = replace(table.jobs, await summaries({ limit: MOST }));
  return { jobs, wholeAt: now, askedAt: now, queuedAt: now };
}

/** One round; undefined if so much has changed that the whole is to be asked for. */
async function askWhatChanges(table: JobTable, now: number): Promise<JobTable | undefined> {
  const newest = await askNewest(table.jobs[0]?.sequence ?? 0);
  const queued = table.jobs.reduce((count, job) => count + (job.state === 'Queued' ? 1 : 0), 0);
  const queueIsDue = now - table.queuedAt >= PER_QUEUED * queued;
  const states: readonly State[] = queueIsDue ? ['Queued', ...PLACED] : PLACED;
  const live = await summaries({ state: states.join(','), limit: MOST });
  const { jobs, open } = merge(table.jobs, { ...newest, live, states });
  if (open.length > SINGLY) return undefined;
  const answers = await Promise.all(open.map(({ sequence }) => askOne(sequence)));
  return {
    jobs: settle(jobs, new Map(answers)),
    wholeAt: table.wholeAt,
    askedAt: now,
    queuedAt: queueIsDue ? now : table.queuedAt,
  };
}

/** The newest jobs, down to the newest that is known. */
async function askNewest(known: number): Promise<{ newest: JobSummary[]; older: boolean }> {
  const newest = await summaries({ limit: NEWEST });
  let older = newest.length === NEWEST;
  while (older && newest.at(-1)!.sequence > known) {
    const page = await summaries({ limit: GAP, before: newest.at(-1)!.sequence });
    newest.push(...page);
    older = page.length === GAP;
  }
  return { newest, older };
}

/** The job with that sequence, null if there is none any more. */
async function askOne(sequence: number): Promise<[number, JobSummary | null]> {
  const [job] = await summaries({ limit: 1, before: sequence + 1 });
  return [sequence, job?.sequence === sequence ? job : null];
}

async function summaries(query: { state?: string; limit: number; before?: number }): Promise<JobSummary[]> {
  return (await answer(service.GET('/v1/job-summaries', { params: { query } }))).jobs;
}
