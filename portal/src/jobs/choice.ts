// Which rows are chosen, and the row that the keyboard is at.
import type { JobSummary } from '../api/client';

/** Chooses a job or no longer; with `from` all rows from that one to it become as it becomes. */
export function choose(
  chosen: ReadonlySet<string>,
  shown: JobSummary[],
  job: string,
  from: string | null,
): Set<string> {
  const next = new Set(chosen);
  const on = !chosen.has(job);
  for (const id of from === null ? [job] : range(shown, from, job)) {
    if (on) next.add(id);
    else next.delete(id);
  }
  return next;
}

function range(shown: JobSummary[], from: string, to: string): string[] {
  const start = shown.findIndex((job) => job.id === from);
  const end = shown.findIndex((job) => job.id === to);
  if (start < 0 || end < 0) return [to];
  return shown.slice(Math.min(start, end), Math.max(start, end) + 1).map((job) => job.id);
}

/** The row `step` rows below `current`; the first one where there is none yet. */
export function move(shown: JobSummary[], current: string | null, step: number): string | null {
  const at = shown.findIndex((job) => job.id === current);
  const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), shown.length - 1);
  return shown[next]?.id ?? null;
}
