// Asks what the jobs on nodes use, again and again while the page is seen.
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import { answer, type Node, service } from '../api/client';
import { LIVE } from '../api/queries';
import { type Asked, jobsOf, nextToAsk, type Use, useOf } from './use';

async function ask(job: string): Promise<[string, Asked]> {
  const usage = await answer(
    service.GET('/v1/jobs/{job}/usage', { params: { path: { job }, query: { points: 1 } } }),
  ).catch(() => null); // it has ended meanwhile, or is none of this service's
  return [job, { at: Date.now(), usage }];
}

/** By keyOf the node; nodes of which nothing is known are not in it. */
export function useUse(nodes: Node[]): ReadonlyMap<string, Use> {
  const known = useRef<ReadonlyMap<string, Asked>>(new Map());
  const jobs = useMemo(() => jobsOf(nodes), [nodes]);
  const { data } = useQuery({
    queryKey: ['nodes-use', jobs],
    queryFn: async () => {
      const fresh = await Promise.all(nextToAsk(jobs, known.current).map(ask));
      const all = [...known.current, ...fresh].filter(([job]) => jobs.includes(job));
      known.current = new Map(all);
      return known.current;
    },
    enabled: jobs.length > 0,
    placeholderData: (before) => before,
    structuralSharing: false, // it is a map
    refetchInterval: LIVE,
  });
  return useMemo(() => {
    const uses = new Map<string, Use>();
    const now = Date.now();
    for (const node of nodes) {
      const use = data && useOf(node, data, now);
      if (use) uses.set(keyOf(node), use);
    }
    return uses;
  }, [nodes, data]);
}

export function keyOf(node: Node): string {
  return `${node.compute}/${node.name}`;
}
