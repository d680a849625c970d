// The order in which jobs that wait are started.
import type { JobSummary } from '../api/client';

const RANKS = { high: 0, normal: 1, low: 2 };

/** By priority, then first come, first served, as the service takes them. */
export function inOrder(jobs: JobSummary[]): JobSummary[] {
  return [...jobs].sort((a, b) => RANKS[a.priority] - RANKS[b.priority] || a.sequence - b.sequence);
}
