// The points of metrics as a file of comma-separated values, as RFC 4180 has them.
import type { Metric } from '../parts/metricSeries';

type Cell = string | number | null;

/** Writes a row for each point or span of points: its last value, least and greatest, and how many are not finite. */
export function metricsCsv(metrics: readonly Metric[]): string {
  const rows: Cell[][] = [['metric', 'rank', 'run', 'step', 'time', 'value', 'low', 'high', 'not_finite']];
  for (const { name, rank, run, course } of metrics) {
    course.value.forEach((value, i) => {
      const at = course.time[i] ?? null;
      const moment = at === null ? null : new Date(at * 1000).toISOString();
      const span = [course.low[i]!, course.high[i]!, course.not_finite[i]!];
      rows.push([name, rank, run, course.step[i]!, moment, value, ...span]);
    });
  }
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** A text that a spreadsheet would take for a formula has a ' before it. */
function cell(value: Cell): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
