// The points of metrics as rows of a file.
import type { Metric } from '../parts/metricSeries';

type Row = (string | number | null)[];

/** A row a point: the whole course, and behind it the newest points that come after it. */
export function metricRows(metrics: readonly Metric[]): Row[] {
  const rows: Row[] = [['metric', 'rank', 'run', 'step', 'time', 'value']];
  for (const { name, rank, run, count, course, newest } of metrics) {
    const add = ({ step, time, value }: Metric['course'], end: number) => {
      for (let i = 0; i < end; i++) {
        const at = time[i] ?? null;
        const moment = at === null ? null : new Date(at * 1000).toISOString();
        rows.push([name, rank, run, step[i] ?? null, moment, value[i] ?? null]);
      }
    };
    add(course, olderThan(newest, course, count));
    add(newest, newest.value.length);
  }
  return rows;
}

/** How many points of the course come before the newest ones. */
function olderThan(newest: Metric['course'], course: Metric['course'], count: number): number {
  if (newest.value.length >= count) return 0;
  const column = newest.step[0] != null ? 'step' : 'time';
  const first = newest[column][0];
  if (first == null) return course.value.length;
  return course[column].findLastIndex((at) => at !== null && at < first) + 1;
}

/** Whether rows leave out points that were reported. */
export function isThinned(metrics: readonly Metric[]): boolean {
  return metrics.some(({ count, newest, course }) => count > Math.max(newest.value.length, course.value.length));
}
