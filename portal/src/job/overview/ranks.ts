// What is known of each rank of a job: its node, what it uses, how it ended.
import type { Job, JobUsage, Schemas } from '../../api/client';
import { moment } from '../../parts/format';

export interface Rank {
  rank: number;
  node: string;
  /** How its process stands; null until the service has been asked. */
  state: Schemas['RankState']['state'] | null;
  /** Since when it runs, or when and how it ended. */
  since: string | null;
  code: number | null;
  signal: number | null;
  /** Cores and bytes, newest; null where nothing was measured, and of a rank that does not run. */
  cpu: number | null;
  memory: number | null;
  /** How it failed: the job's cause, or what followed from it. */
  failure: { what: string; consequence: boolean } | null;
}

/** The ranks of a job by node, in order; `usage` is missing until the service has answered. */
export function ranksOf(
  job: Pick<Job, 'world_size' | 'nodes' | 'node_count' | 'failures'>,
  usage?: JobUsage,
): Map<string, Rank[]> {
  const ranks: Rank[] = Array.from({ length: job.world_size }, (_, rank) => ({
    rank,
    node: nodeOf(rank, job),
    state: job.nodes.length === 0 ? 'not_started' : usage ? 'unknown' : null,
    since: null,
    code: null,
    signal: null,
    cpu: null,
    memory: null,
    failure: null,
  }));
  // A service of before does not tell `ranks`, although its type has it.
  for (const told of (usage?.ranks as JobUsage['ranks'] | undefined) ?? []) {
    const rank = ranks[told.rank];
    if (!rank) continue;
    const { state, since = null, code = null, signal = null } = told;
    Object.assign(rank, { node: told.node || rank.node, state, since, code, signal });
  }
  for (const { recent } of usage?.nodes ?? []) {
    for (const measured of recent.ranks) {
      const rank = ranks[measured.rank];
      if (rank?.state !== 'running') continue;
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

const WORDS = { not_started: 'not started', running: 'running', ended: 'ended', unknown: 'not known' };

/** "ended"; "–" until the service has been asked. */
export function stateWord({ state }: Pick<Rank, 'state'>): string {
  return state === null ? '–' : (WORDS[state] ?? state);
}

/** How a rank ended, and when: "exit code 0, 2026-11-30 12:03:11"; '' of one that has not. */
export function endOf({ state, since, code, signal }: Pick<Rank, 'state' | 'since' | 'code' | 'signal'>): string {
  if (state !== 'ended') return '';
  return `${signal === null ? `exit code ${code ?? 0}` : `signal ${signal}`}${since ? `, ${moment(since)}` : ''}`;
}

/** "2 running, 1 ended", each state in which any is. */
export function countsOf(ranks: Pick<Rank, 'state'>[]): string {
  return (Object.keys(WORDS) as (keyof typeof WORDS)[])
    .map((state) => [ranks.filter((rank) => rank.state === state).length, WORDS[state]] as const)
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count.toLocaleString('en')} ${word}`)
    .join(', ');
}

/** Ranks are dealt out in blocks, as many to each node. */
function nodeOf(rank: number, job: Pick<Job, 'nodes' | 'node_count' | 'world_size'>): string {
  const { nodes, node_count, world_size } = job;
  const each = Math.max(1, Math.ceil(world_size / Math.max(1, node_count)));
  return nodes[Math.floor(rank / each)] ?? '';
}
