// What jobs report, as curves: one chart a name, in groups by prefix.
import type { JobMetrics } from '../api/client';
import type { ChartSeries } from './chartSeries';
import { byInterest } from './metricOrder';
import { type Points, pointsOf } from './points';
import { smooth } from './smooth';
import type { XUnit } from './units';

export type Metric = JobMetrics['metrics'][number];
type Columns = Metric['course'];

export interface MetricChart {
  name: string;
  series: ChartSeries[];
}

/** One curve of a chart: whose metric it is. */
export interface Source {
  key: string;
  name: string;
  color: number;
  metric: Metric;
  /** Of elapsed time: when it began, in seconds since 1970. */
  began?: number;
}

/** The curve of a metric; what is newest in full resolution. */
export function seriesOf(source: Source, xUnit: XUnit, smoothing: number): ChartSeries {
  const { metric, key, name, color } = source;
  const { count, course, newest } = metric;
  const own = newest.value.length;
  const began = xUnit === 'elapsed' ? (source.began ?? firstTime(course)) : 0;
  const curve = (points: Points) =>
    smoothing > 0 ? { points: smooth(points, smoothing), raw: points } : { points };
  const inNewest = () => pointsBy(newest, xUnit, began, (i) => count - own + i);
  if (own >= count) return { key, name, color, ...curve(inNewest()) };
  const intervals = course.value.length - 1; // all of one length but the last
  const place = (i: number) => Math.min(count - 1, i * Math.ceil((count - 1) / intervals));
  const whole = curve(pointsBy(course, xUnit, began, place));
  return { key, name, color, ...whole, detail: own > 1 ? curve(inNewest()) : undefined };
}

/** Lines that tell no step count by their `place` among all lines. */
function pointsBy(columns: Columns, xUnit: XUnit, began: number, place: (i: number) => number): Points {
  const { step, time, value } = columns;
  if (xUnit !== 'step') return pointsOf(time.map((at) => (at === null ? null : at - began)), value);
  if (step.some((at) => at !== null)) return pointsOf(step, value);
  return pointsOf(value.map((_, i) => place(i)), value);
}

function firstTime({ time }: Columns): number {
  return time.find((at) => at !== null) ?? 0;
}

/** Whether any of its points tells when it was made. */
export function hasTimes({ course, newest }: Metric): boolean {
  return [course, newest].some(({ time }) => time.some((at) => at !== null));
}

/** The charts of a job's metrics: one a name, in which each rank and run is a curve. */
export function chartsOf(metrics: readonly Metric[], xUnit: XUnit, smoothing: number): MetricChart[] {
  const byName = grouped(metrics, ({ name }) => name);
  const inOrder = [...byName].sort(([a], [b]) => byInterest(a, b));
  return inOrder.map(([name, all]) => ({
    name,
    series: all.map((metric, color) =>
      seriesOf({ key: `${metric.rank} ${metric.run}`, name: nameOf(metric, all), color, metric }, xUnit, smoothing),
    ),
  }));
}

function nameOf({ name, rank, run }: Metric, all: readonly Metric[]): string {
  if (all.length === 1) return name;
  const runs = new Set(all.filter((other) => other.rank === rank).map((other) => other.run));
  return runs.size > 1 ? `rank ${rank}, ${run ? `run ${run.slice(0, 8)}` : 'metrics file'}` : `rank ${rank}`;
}

/** Charts by what stands before the first "/" of their names; those without come first, under "". */
export function byPrefix<Named extends { name: string }>(charts: readonly Named[]): [string, Named[]][] {
  const groups = grouped(charts, ({ name }) => (name.includes('/') ? name.slice(0, name.indexOf('/')) : ''));
  return [...groups].sort(([a], [b]) => Number(a !== '') - Number(b !== ''));
}

/** Whether a name has each of the words that one looks for. */
export function matches(name: string, search: string): boolean {
  const all = name.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/** The members of a list by what `keyOf` says of them, in the order in which they come. */
export function grouped<Member>(all: readonly Member[], keyOf: (member: Member) => string): Map<string, Member[]> {
  const groups = new Map<string, Member[]>();
  for (const member of all) {
    const key = keyOf(member);
    const group = groups.get(key);
    if (group) group.push(member);
    else groups.set(key, [member]);
  }
  return groups;
}
