// What pages ask again and again. A page that is hidden asks nothing.
import { QueryClient, queryOptions } from '@tanstack/react-query';
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
function isRefused(error: Error | null): boolean {
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
