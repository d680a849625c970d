// A chart's curves, and what is drawn or told of them at some place.
import { aligned, lastOf, nearest, NO_POINTS, type Points, positive, type Range, withGaps } from './points';
import { type Unit, written, writtenX, type XUnit } from './units';

export interface Curve {
  points: Points;
  /** Before it was smoothed: drawn faint behind. */
  raw?: Points;
}

export interface ChartSeries extends Curve {
  key: string;
  name: string;
  /** Which colour of the palette. */
  color: number;
  /** The same in a finer resolution, of a part only: drawn where that part holds all that is visible. */
  detail?: Curve & { covers: Range };
  /** How many of its values are NaN or infinite. */
  notFinite?: number;
  /** What its last value is called, where that is not finite. */
  last?: string;
}

/** The points that count while `range` is visible. */
export function resolved(series: ChartSeries, range: Range): Curve {
  const { detail } = series;
  return detail && detail.covers[0] <= range[0] && range[1] <= detail.covers[1] ? detail : series;
}

/** What stands for a series, in the order in which it is drawn: the band's edges, the raw curve, the curve. */
export type Part = 'low' | 'high' | 'raw' | 'curve';

export function partsOf({ points, raw, detail }: ChartSeries): Part[] {
  const parts: Part[] = raw ? ['raw', 'curve'] : ['curve'];
  return hasBand(points) || (detail && hasBand(detail.points)) ? ['low', 'high', ...parts] : parts;
}

function hasBand({ low, high }: Points): boolean {
  return Boolean(low && high?.some((value, i) => value > low[i]!));
}

/** What uplot draws while `range` is visible: a column for each part of each series. */
export function drawn(all: readonly ChartSeries[], hidden: ReadonlySet<string>, range: Range, log: boolean) {
  const columns = all.flatMap((series) => {
    const { points, raw = points } = resolved(series, range);
    const { x, low = points.y, high = points.y } = points;
    const of = { low: { x, y: low }, high: { x, y: high }, raw: withGaps(raw), curve: withGaps(points) };
    return partsOf(series).map((part) => {
      if (hidden.has(series.key)) return NO_POINTS;
      return log ? positive(of[part]) : of[part];
    });
  });
  return aligned(columns);
}

/** Where values that are visible are not finite. */
export function marksOf(all: readonly ChartSeries[], hidden: ReadonlySet<string>, range: Range): number[] {
  return all.flatMap((series) => {
    if (hidden.has(series.key)) return [];
    const { x, notFinite } = resolved(series, range).points;
    return [...x].filter((at, i) => notFinite && notFinite[i]! > 0 && at >= range[0] && at <= range[1]);
  });
}

interface Told {
  value: string;
  /** Before it was smoothed. */
  raw?: string;
}

/** What a curve has at the point nearest to `x`, in words; at its last one where `x` is null. */
export function valueAt(series: ChartSeries, x: number | null, range: Range, unit: Unit): Told {
  if (x === null) {
    const { points, raw, last } = series;
    if (last) return { value: last };
    return { value: written(unit, lastOf(points)), raw: raw && written(unit, lastOf(raw)) };
  }
  const { points, raw } = resolved(series, range);
  const at = nearest(points, x);
  if (at < 0) return { value: written(unit, null) };
  const count = points.notFinite?.[at] ?? 0;
  const [low, high] = [points.low?.[at] ?? NaN, points.high?.[at] ?? NaN];
  const value = count > 0 && Number.isNaN(points.y[at]!) ? 'not finite' : written(unit, points.y[at]!);
  const span = high > low ? `, ${written(unit, low)} to ${written(unit, high)}` : '';
  const lost = count > 0 && high > low ? `, ${count} not finite` : '';
  const before = raw?.y[at] ?? NaN;
  return { value: `${value}${span}${lost}`, raw: Number.isNaN(before) ? undefined : written(unit, before) };
}

/** "3 values are not finite"; null where all are. */
export function notFiniteText(count: number | undefined): string | null {
  if (!count) return null;
  return count === 1 ? '1 value is not finite' : `${count} values are not finite`;
}

const TOLD = 5; // curves of a summary

/** The chart in words, for who does not see it. */
export function summaryOf(all: readonly ChartSeries[], unit: Unit, xUnit: XUnit): string {
  const lines = all.slice(0, TOLD).map((series) => {
    const { name, points, raw, last, notFinite } = series;
    const { x, y } = raw ?? points;
    const lost = notFiniteText(notFinite);
    let least = Infinity;
    let most = -Infinity;
    for (const value of [...y, ...(points.low ?? []), ...(points.high ?? [])]) {
      if (value < least) least = value;
      if (value > most) most = value;
    }
    if (least > most) return `${name}: ${lost ?? 'no values'}.`;
    const span = `${writtenX(xUnit, x[0]!)} to ${writtenX(xUnit, x[x.length - 1]!)}`;
    const end = last ?? written(unit, lastOf(raw ?? points));
    const told = `${name}: ${span}, least ${written(unit, least)}, greatest ${written(unit, most)}, last ${end}`;
    return lost ? `${told}; ${lost}.` : `${told}.`;
  });
  if (all.length > TOLD) lines.push(`And ${all.length - TOLD} more.`);
  return lines.join(' ');
}
