// A chart's curves, and what is drawn or told of them at some place.
import { decimate } from './decimate';
import { aligned, lastOf, nearest, NO_POINTS, type Points, positive, type Range } from './points';
import { type Unit, written, writtenX, type XUnit } from './units';

export interface ChartSeries {
  key: string;
  name: string;
  /** Which colour of the palette. */
  color: number;
  points: Points;
  /** Before it was smoothed: drawn faint behind. */
  raw?: Points;
  /** The same in a finer resolution, of the newest part only: drawn where that part holds all that is visible. */
  detail?: { points: Points; raw?: Points };
}

/** The points that count while `range` is visible. */
export function resolved(series: ChartSeries, range: Range): { points: Points; raw?: Points } {
  const { detail } = series;
  const x = detail?.points.x;
  return detail && x && x.length > 1 && x[0]! <= range[0] && range[0] < x[x.length - 1]! ? detail : series;
}

/** What uplot draws, each raw curve before its smoothed one, in `columns` of pixels. */
export function drawn(
  all: readonly ChartSeries[],
  hidden: ReadonlySet<string>,
  range: Range,
  columns: number,
  log: boolean,
) {
  const curves = all.flatMap((series) => {
    if (hidden.has(series.key)) return curvesOf(series).map(() => NO_POINTS);
    const { points, raw } = resolved(series, range);
    const now = series.raw ? [raw ?? points, points] : [points];
    return now.map((curve) => decimate(log ? positive(curve) : curve, range[0], range[1], columns));
  });
  return aligned(curves);
}

/** Which curves stand for a series, and whether each is faint. */
export function curvesOf(series: ChartSeries): boolean[] {
  return series.raw ? [true, false] : [false];
}

/** The value of a curve nearest to `x`, and the raw one; of its last point where `x` is null. */
export function valueAt(series: ChartSeries, x: number | null, range: Range): { value: number | null; raw?: number } {
  const { points, raw } = resolved(series, range);
  if (x === null) return { value: lastOf(points), raw: raw ? (lastOf(raw) ?? undefined) : undefined };
  const at = nearest(points, x);
  const value = points.y[at];
  const found = value === undefined || Number.isNaN(value) ? null : value;
  const rawAt = raw ? raw.y[at] : undefined;
  return { value: found, raw: rawAt === undefined || Number.isNaN(rawAt) ? undefined : rawAt };
}

const TOLD = 5; // curves of a summary

/** The chart in words, for who does not see it. */
export function summaryOf(all: readonly ChartSeries[], unit: Unit, xUnit: XUnit): string {
  const lines = all.slice(0, TOLD).map(({ name, points, raw }) => {
    const { x, y } = raw ?? points;
    let least = Infinity;
    let most = -Infinity;
    for (const value of y) {
      if (value < least) least = value;
      if (value > most) most = value;
    }
    if (least > most) return `${name}: no values.`;
    const span = `${writtenX(xUnit, x[0]!)} to ${writtenX(xUnit, x[x.length - 1]!)}`;
    const last = written(unit, lastOf(raw ?? points));
    return `${name}: ${span}, least ${written(unit, least)}, greatest ${written(unit, most)}, last ${last}.`;
  });
  if (all.length > TOLD) lines.push(`And ${all.length - TOLD} more.`);
  return lines.join(' ');
}
