// All that a comparison needs of its jobs.
import { queryOptions, useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { answer, type Job, type JobMetrics, service, ServiceError } from '../api/client';
import { hasEnded, jobQuery, LIVE, rankMetricsQuery } from '../api/queries';
import type { Metric } from '../parts/metricSeries';
import type { Given } from './differences';

export interface Compared {
  id: string;
  /** Its number among the chosen ones, and so its colour. */
  color: number;
  job: Job | null;
  metrics: readonly Metric[] | null;
  given: Given | null;
  error: Error | null;
}

/** A job that is not there is not asked for again. */
function chosenJobQuery(id: string) {
  const query = jobQuery(id);
  const gone = (error: unknown) => error instanceof ServiceError && error.status === 404;
  return {
    ...query,
    refetchInterval: (now: { state: { data?: Job; error: unknown } }) =>
      !gone(now.state.error) && !hasEnded(now.state.data?.state) && LIVE,
  };
}

const givenQuery = (id: string, job: Job | undefined) =>
  queryOptions({ queryKey: ['given', id], queryFn: () => givenOf(job!), staleTime: Infinity });

async function givenOf({ id, parent }: Job): Promise<Omit<Given, 'job'>> {
  const of = (job: string) => ({ params: { path: { job } } });
  if (parent === null) {
    return { submission: await answer(service.GET('/v1/jobs/{job}/submission', of(id))), trial: null };
  }
  // A step or a trial: its parent was submitted, and knows what the trial was given.
  const { children } = await answer(service.GET('/v1/jobs/{job}', of(parent)));
  return { submission: null, trial: children.find((child) => child.id === id)?.values ?? null };
}

type Answer<T> = { data?: T; error: Error | null };

/** The parts of answers that count here; what has not changed stays the same object. */
function told<T>(answers: Answer<T>[]): Answer<T>[] {
  return answers.map(({ data, error }) => ({ data, error }));
}

export function useCompared(ids: readonly string[]): Compared[] {
  const jobs = useQueries({ queries: ids.map(chosenJobQuery), combine: told<Job> });
  const metrics = useQueries({
    queries: ids.map((id, i) => ({
      ...rankMetricsQuery(id, null, !hasEnded(jobs[i]?.data?.state)),
      enabled: jobs[i]?.data !== undefined,
    })),
    combine: told<JobMetrics>,
  });
  const givens = useQueries({
    queries: ids.map((id, i) => ({ ...givenQuery(id, jobs[i]?.data), enabled: jobs[i]?.data !== undefined })),
    combine: told<Omit<Given, 'job'>>,
  });
  return useMemo(
    () =>
      ids.map((id, color) => {
        const job = jobs[color]?.data ?? null;
        const given = givens[color]?.data;
        return {
          id,
          color,
          job,
          metrics: metrics[color]?.data?.metrics ?? null,
          given: job && given ? { job, ...given } : null,
          error: job ? null : (jobs[color]?.error ?? null),
        };
      }),
    [ids, jobs, metrics, givens],
  );
}

/** What a job is called beside the others: its name, or its id where that is not one job's alone. */
export function shortName(compared: readonly Compared[], id: string): string {
  const name = compared.find((one) => one.id === id)?.job?.display_name;
  const alike = compared.filter(({ job }) => job?.display_name === name);
  return name === undefined || alike.length > 1 ? id : name;
}
