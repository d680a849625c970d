// A job's metrics and usage in the resolution that charts want, again and again while it runs.
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answer, type Job, service } from '../api/client';
import { LIVE } from '../api/queries';

const COURSE = 512; // points at most, as the service gives them
const NEWEST = 256;
const MANY = 32; // metrics: of more it is asked less often

/** The metrics of `rank`, or those of the lowest rank that reports any. */
export const rankMetricsQuery = (job: string, rank: number | null, live: boolean) =>
  queryOptions({
    // `live` is part of the key, so that the last points are asked for once the job has ended.
    queryKey: ['metrics', job, 'charts', rank, live],
    queryFn: () => {
      const query = { points: COURSE, newest: NEWEST, ...(rank !== null && { rank }) };
      return answer(service.GET('/v1/jobs/{job}/metrics', { params: { path: { job }, query } }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: (query) => live && LIVE * Math.ceil((query.state.data?.metrics.length ?? 1) / MANY),
  });

/** What the job uses; of a large gang in the resolution that the service chooses. */
export const chartUsageQuery = (job: Job, live: boolean) =>
  queryOptions({
    queryKey: ['usage', job.id, 'charts', live],
    queryFn: () => {
      const points = job.world_size <= 16 ? 600 : job.world_size <= 64 ? 240 : undefined;
      const params = { path: { job: job.id }, query: points ? { points } : {} };
      return answer(service.GET('/v1/jobs/{job}/usage', { params }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: live && LIVE * (job.world_size <= 64 ? 1 : 3),
  });
