// What a node uses now: the sum of what its jobs use there (docs/decisions/097-top.md).
import type { JobUsage, Node } from '../api/client';

export const MOST_ASKED = 32; // jobs whose use is asked at once
const DOUBTFUL = 10; // seconds: an older value is marked
const STILL_NOW = 45; // seconds: an older one is not known

/** The use of one job as it was answered at a time (Date.now()). */
export interface Asked {
  at: number;
  usage: JobUsage | null; // null: the service has none of it
}

/** Null: not known. Processors, bytes, busy GPUs, bytes a second. */
export interface Use {
  cores: number | null;
  memory: number | null;
  gpus: number | null;
  read: number | null;
  written: number | null;
  received: number | null;
  sent: number | null;
  /** Whether it is old, or lacks a job. */
  doubtful: boolean;
}

export function jobsOf(nodes: Node[]): string[] {
  return [...new Set(nodes.flatMap((node) => node.jobs))];
}

/** Those to ask now: of more than `most`, the ones that were asked longest ago. */
export function nextToAsk(jobs: string[], asked: ReadonlyMap<string, Asked>, most = MOST_ASKED): string[] {
  if (jobs.length <= most) return jobs;
  const when = (job: string) => asked.get(job)?.at ?? 0;
  return [...jobs].sort((a, b) => when(a) - when(b)).slice(0, most);
}

type Series = JobUsage['nodes'][number]['recent'];
type Amount = 'cpu' | 'memory' | 'gpu_use' | 'disk_read' | 'disk_write' | 'net_receive' | 'net_send';

function newest(series: Series, name: Amount): number | null {
  return series[name]?.at(-1) ?? null;
}

function sum(values: (number | null)[]): number | null {
  const known = values.filter((value) => value != null);
  return known.length > 0 ? known.reduce((a, b) => a + b, 0) : null;
}

function most(values: (number | null)[]): number | null {
  const known = values.filter((value) => value != null);
  return known.length > 0 ? Math.max(...known) : null;
}

/** Null where nothing is known of it. */
export function useOf(node: Node, asked: ReadonlyMap<string, Asked>, now: number): Use | null {
  const parts: Series[] = [];
  let doubtful = false;
  for (const job of node.jobs) {
    const known = asked.get(job);
    const part = known?.usage?.live ? known.usage.nodes.find((one) => one.name === node.name) : undefined;
    const age = part?.age != null ? part.age + (now - known!.at) / 1000 : Infinity;
    if (!part || age > STILL_NOW) {
      doubtful = true;
      continue;
    }
    doubtful ||= age > DOUBTFUL;
    parts.push(part.recent);
  }
  if (parts.length === 0) return null;
  const all = (name: Amount) => parts.map((part) => newest(part, name));
  // The network is the machine's, so each of its jobs tells the whole of it.
  return {
    cores: sum(all('cpu')),
    memory: sum(all('memory')),
    gpus: sum(all('gpu_use')),
    read: sum(all('disk_read')),
    written: sum(all('disk_write')),
    received: most(all('net_receive')),
    sent: most(all('net_send')),
    doubtful,
  };
}
