// Points of a curve, as charts take them: x ascending without repeats, y NaN where there is a gap.

export interface Points {
  readonly x: Float64Array;
  readonly y: Float64Array;
}

export type Range = readonly [number, number];

export const NO_POINTS: Points = { x: new Float64Array(0), y: new Float64Array(0) };

/**
 * Points of two columns. Those without an x are left out. A job that resumed reports steps again: of equal x the
 * last one counts.
 */
export function pointsOf(x: ArrayLike<number | null>, y: ArrayLike<number | null>): Points {
  const xs = new Float64Array(x.length);
  const ys = new Float64Array(x.length);
  let count = 0;
  let ascending = true;
  for (let i = 0; i < x.length; i++) {
    const at = x[i];
    if (at == null || !Number.isFinite(at)) continue;
    if (count > 0 && at <= xs[count - 1]!) ascending = false;
    const value = y[i];
    xs[count] = at;
    ys[count++] = value == null || !Number.isFinite(value) ? NaN : value;
  }
  const points = { x: xs.subarray(0, count), y: ys.subarray(0, count) };
  return ascending ? points : ordered(points);
}

function ordered({ x, y }: Points): Points {
  const order = Array.from(x.keys()).sort((a, b) => x[a]! - x[b]! || a - b);
  const kept = order.filter((at, i) => i + 1 === order.length || x[order[i + 1]!] !== x[at]);
  return { x: Float64Array.from(kept, (at) => x[at]!), y: Float64Array.from(kept, (at) => y[at]!) };
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
export function extentOf(all: Iterable<Points>): Range | null {
  let from = Infinity;
  let to = -Infinity;
  for (const { x } of all) {
    if (x.length === 0) continue;
    from = Math.min(from, x[0]!);
    to = Math.max(to, x[x.length - 1]!);
  }
  return from <= to ? [from, to] : null;
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
