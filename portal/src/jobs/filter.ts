// Which jobs are shown, and in which order: what the address says after its question mark.
import type { JobSummary, State } from '../api/client';
import { secondsBetween } from '../parts/format';

export const STATES: readonly State[] = [
  'Queued', 'Preparing', 'Provisioning', 'Starting', 'Running', 'Finalizing', 'Completed', 'Failed', 'Canceled',
];

export const SORT_KEYS = ['newest', 'ran', 'name', 'state'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

export interface Filter {
  search: string;
  /** None: all. */
  states: State[];
  /** Empty: all. */
  experiment: string;
  sort: SortKey;
  /** Against the order that one expects first: the oldest, the shortest, from z on. */
  reverse: boolean;
}

/** What the query of an address says. What it does not know is passed over. */
export function readFilter(query: URLSearchParams): Filter {
  const sort = query.get('sort') ?? '';
  const key = sort.replace(/^-/, '') as SortKey;
  const named = new Set(query.get('state')?.split(','));
  return {
    search: query.get('q') ?? '',
    states: STATES.filter((state) => named.has(state)),
    experiment: query.get('experiment') ?? '',
    sort: SORT_KEYS.includes(key) ? key : 'newest',
    reverse: SORT_KEYS.includes(key) && sort.startsWith('-'),
  };
}

/** The query with this filter; keys of others stay. */
export function writeFilter(query: URLSearchParams, filter: Filter): URLSearchParams {
  const next = new URLSearchParams(query);
  const write = (key: string, value: string) => (value ? next.set(key, value) : next.delete(key));
  write('q', filter.search);
  write('state', filter.states.join(','));
  write('experiment', filter.experiment);
  const sort = (filter.reverse ? '-' : '') + filter.sort;
  write('sort', sort === 'newest' ? '' : sort);
  return next;
}

export interface Selection {
  shown: JobSummary[];
  /** How many there are in each state, whichever states are shown. */
  counts: Map<State, number>;
}

/** Chooses from jobs, newest first, and puts them into order. */
export function select(jobs: JobSummary[], filter: Filter, now: number): Selection {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const counts = new Map<State, number>();
  const shown: JobSummary[] = [];
  for (const job of jobs) {
    if (filter.experiment && job.experiment_name !== filter.experiment) continue;
    if (words.length > 0 && !hasAll(job, words)) continue;
    counts.set(job.state, (counts.get(job.state) ?? 0) + 1);
    if (filter.states.length === 0 || filter.states.includes(job.state)) shown.push(job);
  }
  return { shown: sorted(shown, filter, now), counts };
}

/** The names of all experiments, in the order of the alphabet. */
export function experimentsOf(jobs: JobSummary[]): string[] {
  return [...new Set(jobs.map((job) => job.experiment_name))].filter(Boolean).sort(byLetters.compare);
}

// What is searched of a job is put together once for each of its states.
const searched = new WeakMap<JobSummary, string>();

function hasAll(job: JobSummary, words: string[]): boolean {
  let text = searched.get(job);
  if (text === undefined) {
    text = [job.id, job.display_name, job.experiment_name, job.command, job.reason].join('\n').toLowerCase();
    searched.set(job, text);
  }
  return words.every((word) => text.includes(word));
}

const byLetters = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

function sorted(jobs: JobSummary[], { sort, reverse }: Filter, now: number): JobSummary[] {
  if (sort === 'newest') return reverse ? jobs.toReversed() : jobs;
  const order = { name: sortByName, state: sortByState, ran: sortByDuration }[sort];
  const inOrder = order(jobs, now);
  return reverse ? inOrder.reverse() : inOrder;
}

function sortByName(jobs: JobSummary[]): JobSummary[] {
  return jobs.toSorted((a, b) => byLetters.compare(a.display_name, b.display_name));
}

function sortByState(jobs: JobSummary[]): JobSummary[] {
  return jobs.toSorted((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state));
}

/** The longest first; those that have not begun are last. */
function sortByDuration(jobs: JobSummary[], now: number): JobSummary[] {
  const seconds = new Map(jobs.map((job) => [job, secondsBetween(job.started, job.ended, now) ?? -1]));
  return jobs.toSorted((a, b) => seconds.get(b)! - seconds.get(a)!);
}
