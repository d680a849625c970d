// What is known of each rank of a job: its node, what it uses, how it ended.
import type { Job, JobUsage } from '../../api/client';

export interface Rank {
  rank: number;
  node: string;
  /** Cores and bytes, newest; null where nothing was measured. */
  cpu: number | null;
  memory: number | null;
  /** How it failed: the job's cause, or what followed from it. */
  failure: { what: string; consequence: boolean } | null;
}

/** The ranks of a job by node, in order; `usage` may be missing. */
export function ranksOf(
  job: Pick<Job, 'world_size' | 'nodes' | 'node_count' | 'failures'>,
  usage?: JobUsage,
): Map<string, Rank[]> {
  const ranks: Rank[] = Array.from({ length: job.world_size }, (_, rank) => ({
    rank,
    node: nodeOf(rank, job),
    cpu: null,
    memory: null,
    failure: null,
  }));
  for (const { node, name, recent } of usage?.nodes ?? []) {
    for (const measured of recent.ranks) {
      const rank = ranks[measured.rank];
      if (!rank) continue;
      rank.node = name || job.nodes[node] || rank.node;
      rank.cpu = measured.cpu.at(-1) ?? null;
      rank.memory = measured.memory.at(-1) ?? null;
    }
  }
  for (const { rank, node, what, consequence } of job.failures) {
    const failed = rank === null ? undefined : ranks[rank];
    if (!failed) continue;
    failed.node = node || failed.node;
    failed.failure ??= { what, consequence };
  }
  const byNode = new Map<string, Rank[]>();
  for (const rank of ranks) {
    const there = byNode.get(rank.node);
    if (there) there.push(rank);
    else byNode.set(rank.node, [rank]);
  }
  return byNode;
}

/** Ranks are dealt out in blocks, as many to each node. */
function nodeOf(rank: number, job: Pick<Job, 'nodes' | 'node_count' | 'world_size'>): string {
  const { nodes, node_count, world_size } = job;
  const each = Math.max(1, Math.ceil(world_size / Math.max(1, node_count)));
  return nodes[Math.floor(rank / each)] ?? '';
}
