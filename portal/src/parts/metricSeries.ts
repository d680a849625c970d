// What jobs report, as curves: one chart a name, in groups by prefix.
import type { JobMetrics } from '../api/client';
import type { ChartSeries } from './chartSeries';
import { number } from './format';
import { byInterest } from './metricOrder';
import { hull, type Points, pointsOf, type Range, smooth } from './points';
import type { XUnit } from './units';

export type Metric = JobMetrics['metrics'][number];

/** One curve of a chart: whose metric it is. */
export interface Source {
  key: string;
  name: string;
  color: number;
  job: string;
  metric: Metric;
  /** Of elapsed time: when it began, in seconds since 1970. */
  began?: number;
}

export interface MetricChart {
  name: string;
  sources: Source[];
}

/** The points of a metric within a part of the axis, as the service tells them. */
export interface Detail {
  metric: Metric;
  covers: Range;
}

/** The curve of a metric; in the part that `detail` covers in its resolution. */
export function seriesOf(source: Source, xUnit: XUnit, smoothing: number, detail?: Detail): ChartSeries {
  const { metric, key, name, color } = source;
  const began = beganOf(source, xUnit);
  const curve = (of: Metric) => {
    const points = metricPoints(of, xUnit, began);
    return smoothing > 0 ? { points: smooth(points, smoothing), raw: points } : { points };
  };
  return {
    key,
    name,
    color,
    ...curve(metric),
    detail: detail && { ...curve(detail.metric), covers: detail.covers },
    notFinite: metric.not_finite,
    last: metric.last_not_finite === null ? undefined : NOT_FINITE[metric.last_not_finite],
  };
}

const NOT_FINITE = { nan: 'NaN', inf: 'Infinity', '-inf': '-Infinity' };

/** The last value of a metric, as one reads it. */
export function lastText({ last, last_not_finite }: Metric): string {
  return last_not_finite === null ? number(last) : NOT_FINITE[last_not_finite];
}

/** The points of a metric. Those that tell no step count by their place among all of the metric. */
function metricPoints({ course, first, span, count }: Metric, xUnit: XUnit, began: number): Points {
  const { step, time, value } = course;
  if (xUnit !== 'step') return pointsOf(time.map((at) => (at === null ? null : at - began)), value, course);
  if (step.some((at) => at !== null)) return pointsOf(step, value, course);
  return pointsOf(value.map((_, i) => Math.min(count - 1, first + (i + 1) * span - 1)), value, course);
}

/** What is zero on the axis, in seconds since 1970. */
export function beganOf({ metric, began }: Source, xUnit: XUnit): number {
  if (xUnit !== 'elapsed') return 0;
  return began ?? metric.course.time.find((at) => at !== null) ?? 0;
}

/** Whether any of its points tells when it was made. */
export function hasTimes({ course }: Metric): boolean {
  return course.time.some((at) => at !== null);
}

/** The charts of a job's metrics: one a name, in which each rank and run is a curve. */
export function chartsOf(job: string, metrics: readonly Metric[]): MetricChart[] {
  const byName = grouped(metrics, ({ name }) => name);
  const inOrder = [...byName].sort(([a], [b]) => byInterest(a, b));
  return inOrder.map(([name, all]) => ({
    name,
    sources: all.map((metric, color) => {
      return { key: `${metric.rank} ${metric.run}`, name: nameOf(metric, all), color, job, metric };
    }),
  }));
}

function nameOf({ name, rank, run }: Metric, all: readonly Metric[]): string {
  if (all.length === 1) return name;
  const runs = new Set(all.filter((other) => other.rank === rank).map((other) => other.run));
  return runs.size > 1 ? `rank ${rank}, ${run ? `run ${run.slice(0, 8)}` : 'metrics file'}` : `rank ${rank}`;
}

/** The horizontal axes of charts. */
export interface Axes {
  /** From where to where each chart has points. */
  extents: Map<string, Range | null>;
  /** The charts that have an axis in common, and are zoomed together. */
  shared: ReadonlySet<string>;
  extent: Range | null;
}

const ENOUGH = 1 / 8;

/**
 * Charts of times have one axis. Of steps those charts have an axis of their own that cover less than an eighth of the
 * longest one: epochs beside steps would be a dot at its edge.
 */
export function axesOf(charts: readonly MetricChart[], xUnit: XUnit): Axes {
  const extents = new Map(
    charts.map(({ name, sources }) => [name, hull(sources.map((source) => extentOf(source, xUnit)))]),
  );
  const width = (range: Range | null) => (range ? range[1] - range[0] : 0);
  const longest = [...extents.values()].reduce((a, b) => (width(b) > width(a) ? b : a), null);
  const covers = (range: Range | null) =>
    xUnit !== 'step' || !range || !longest ||
    Math.min(range[1], longest[1]) - Math.max(range[0], longest[0]) >= ENOUGH * width(longest);
  const shared = [...extents].filter(([, range]) => covers(range));
  return { extents, shared: new Set(shared.map(([name]) => name)), extent: hull(shared.map(([, range]) => range)) };
}

/** From the first point of a metric to its last one. Each of the course is its span's last, the first lies before it. */
function extentOf(source: Source, xUnit: XUnit): Range | null {
  const { metric } = source;
  const { x } = metricPoints(metric, xUnit, beganOf(source, xUnit));
  const [first, second = first] = x;
  if (first === undefined) return null;
  return [first - (second! - first) * (1 - 1 / metric.span), x[x.length - 1]!];
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
