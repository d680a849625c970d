// Points of a curve, as charts take them: x ascending without repeats, y NaN where there is a gap.

export interface Points {
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** A point may stand for a span of values: their least and greatest, and how many are NaN or infinite. */
  readonly low?: Float64Array;
  readonly high?: Float64Array;
  readonly notFinite?: Float64Array;
}

type Column = ArrayLike<number | null>;

export type Range = readonly [number, number];

export const NO_POINTS: Points = { x: new Float64Array(0), y: new Float64Array(0) };

interface Spans {
  low: Column;
  high: Column;
  not_finite: Column;
}

/**
 * Points of columns, in which null is no value. Those without an x are left out. A job that resumed reports steps
 * again: of equal x the last one counts.
 */
export function pointsOf(x: Column, y: Column, spans?: Spans): Points {
  const isNumber = (value: number | null | undefined) => value != null && Number.isFinite(value);
  const known = Array.from(x, (_, i) => i).filter((i) => isNumber(x[i]));
  const ascending = known.every((at, i) => i === 0 || x[known[i - 1]!]! < x[at]!);
  const order = ascending ? known : inOrder(known, x);
  const picked = (column: Column) => Float64Array.from(order, (at) => (isNumber(column[at]) ? column[at]! : NaN));
  const points = { x: picked(x), y: picked(y) };
  if (!spans) return points;
  return { ...points, low: picked(spans.low), high: picked(spans.high), notFinite: picked(spans.not_finite) };
}

function inOrder(known: readonly number[], x: Column): number[] {
  const order = [...known].sort((a, b) => x[a]! - x[b]! || a - b);
  return order.filter((at, i) => i + 1 === order.length || x[order[i + 1]!] !== x[at]);
}

/**
 * Exponential smoothing as TensorBoard does it: a moving mean that begins at zero, divided by the weight that it has
 * seen so far, so that the first values count in full. `weight`: 0 (nothing is smoothed) to below 1. Gaps stay, and do
 * not count.
 */
export function smooth(points: Points, weight: number): Points {
  if (weight <= 0) return points;
  let mean = 0;
  let seen = 1; // weight to the power of the number of values
  const y = points.y.map((value) => {
    if (Number.isNaN(value)) return NaN;
    mean = mean * weight + (1 - weight) * value;
    seen *= weight;
    return mean / (1 - seen);
  });
  return { ...points, y };
}

/** The points with a gap before each one in whose span a value is not finite. */
export function withGaps({ x, y, notFinite }: Points): Points {
  if (!notFinite?.some((count) => count > 0)) return { x, y };
  const xs: number[] = [];
  const ys: number[] = [];
  x.forEach((at, i) => {
    if (i > 0 && notFinite[i]! > 0 && !Number.isNaN(y[i]!)) {
      xs.push((x[i - 1]! + at) / 2);
      ys.push(NaN);
    }
    xs.push(at);
    ys.push(y[i]!);
  });
  return { x: Float64Array.from(xs), y: Float64Array.from(ys) };
}

/** The first index whose x is not below `value`; the length if there is none. */
export function lowerBound(x: Float64Array, value: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the point whose x is nearest to `value`; -1 if there are no points. */
export function nearest({ x }: Points, value: number): number {
  if (x.length === 0) return -1;
  const after = lowerBound(x, value);
  if (after === 0) return 0;
  if (after === x.length) return after - 1;
  return x[after]! - value < value - x[after - 1]! ? after : after - 1;
}

/** The x from the least to the greatest of all of them, or null if there is none. */
export function extentOf(all: readonly Points[]): Range | null {
  return hull(all.map(({ x }) => (x.length > 0 ? [x[0]!, x[x.length - 1]!] : null)));
}

/** The range that holds all of these. */
export function hull(all: readonly (Range | null)[]): Range | null {
  return all.reduce((a, b) => (a && b ? [Math.min(a[0], b[0]), Math.max(a[1], b[1])] : (a ?? b)), null);
}

/** The last value that is one, or null. */
export function lastOf({ y }: Points): number | null {
  for (let i = y.length - 1; i >= 0; i--) if (!Number.isNaN(y[i]!)) return y[i]!;
  return null;
}

/** The same with gaps where a logarithm has no value. */
export function positive({ x, y }: Points): Points {
  return { x, y: y.map((value) => (value > 0 ? value : NaN)) };
}

/** All curves over one x, as uplot takes them: null is a gap, undefined a place where the curve has no point. */
export function aligned(all: readonly Points[]): [Float64Array, ...(number | null | undefined)[][]] {
  const [first] = all;
  const same = first !== undefined && all.every(({ x }) => x === first.x);
  const x = same ? first.x : union(all);
  const columns = all.map((points) => {
    const column = new Array<number | null | undefined>(x.length);
    for (let i = 0, j = 0; i < x.length; i++) {
      if (points.x[j] !== x[i]) continue;
      const value = points.y[j++]!;
      column[i] = Number.isNaN(value) ? null : value;
    }
    return column;
  });
  return [x, ...columns];
}

function union(all: readonly Points[]): Float64Array {
  const every = new Float64Array(all.reduce((sum, { x }) => sum + x.length, 0));
  let count = 0;
  for (const { x } of all) {
    every.set(x, count);
    count += x.length;
  }
  every.sort();
  let kept = 0;
  for (let i = 0; i < every.length; i++) if (i === 0 || every[i] !== every[kept - 1]) every[kept++] = every[i]!;
  return every.subarray(0, kept);
}
