// What pages ask again and again. A page that is hidden asks nothing.
import { keepPreviousData, QueryClient, queryOptions } from '@tanstack/react-query';
import { answer, service, ServiceError } from './client';

export const LIVE = 2_000; // milliseconds between two questions about what changes
const SLOW = 10_000;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      // Who may not will not the next time either; a service that is away is asked again by the interval.
      retry: (count, error) => count < 2 && !isRefused(error),
    },
  },
});

/** Whether asking again would be answered in the same way, as of a job that there is not. */
export function isRefused(error: unknown): boolean {
  return error instanceof ServiceError && error.status >= 400 && error.status < 500;
}

/** Whether a job in this state changes no more. */
export function hasEnded(state: string | undefined): boolean {
  return state === 'Completed' || state === 'Failed' || state === 'Canceled';
}

export const jobQuery = (job: string) =>
  queryOptions({
    queryKey: ['job', job],
    queryFn: () => answer(service.GET('/v1/jobs/{job}', { params: { path: { job } } })),
    refetchInterval: (query) => (hasEnded(query.state.data?.state) || isRefused(query.state.error) ? false : LIVE),
  });

export const COURSE = 512; // points of a curve at most, as the service gives them
const MANY = 32; // metrics: of more it is asked less often

/** The metrics of `rank`, or those of the lowest rank that reports any. */
export const rankMetricsQuery = (job: string, rank: number | null, live: boolean) =>
  queryOptions({
    // `live` is part of the key, so that the last points are asked for once the job has ended.
    queryKey: ['metrics', job, 'charts', rank, live],
    queryFn: () => {
      const query = { points: COURSE, ...(rank !== null && { rank }) };
      return answer(service.GET('/v1/jobs/{job}/metrics', { params: { path: { job }, query } }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: (query) => live && LIVE * Math.ceil((query.state.data?.metrics.length ?? 1) / MANY),
  });

export const filesQuery = (job: string) =>
  queryOptions({
    queryKey: ['files', job],
    queryFn: () => answer(service.GET('/v1/jobs/{job}/files', { params: { path: { job } } })),
    staleTime: SLOW,
  });

export const submissionQuery = (job: string) =>
  queryOptions({
    queryKey: ['submission', job],
    queryFn: () =>
      answer(
        service.GET('/v1/jobs/{job}/submission', { params: { path: { job }, query: { former: true } } }),
      ),
    staleTime: Infinity,
  });

export const nodesQuery = queryOptions({
  queryKey: ['nodes'],
  queryFn: () => answer(service.GET('/v1/nodes')),
  refetchInterval: LIVE,
});

export const problemsQuery = queryOptions({
  queryKey: ['problems'],
  queryFn: () => answer(service.GET('/v1/problems')),
  refetchInterval: SLOW,
});
