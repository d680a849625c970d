// Thins a curve to what a screen can show. Of each column of pixels the first, the least, the greatest and the
// last point stay, so that the drawn line and its extremes are those of all points.
import { lowerBound, type Points } from './points';

const KEPT = 6; // points of a column at most: those four, and two that mark gaps

/** The points of `from` to `to`, thinned to `columns`, and one more on each side so that lines reach the edges. */
export function decimate(points: Points, from: number, to: number, columns: number): Points {
  const { x, y } = points;
  const begin = Math.max(0, lowerBound(x, from) - 1);
  const end = Math.min(x.length, upperBound(x, to) + 1);
  if (end - begin <= 4 * columns || columns < 1 || !(to > from)) {
    return { x: x.subarray(begin, end), y: y.subarray(begin, end) };
  }
  const xs = new Float64Array(KEPT * (columns + 2));
  const ys = new Float64Array(KEPT * (columns + 2));
  const width = (to - from) / columns;
  let count = 0;
  for (let i = begin; i < end; ) {
    const border = borderAfter(x[i]!, from, to, width);
    let after = i + 1;
    while (after < end && x[after]! < border) after++;
    for (const kept of keptOf(y, i, after)) {
      xs[count] = x[kept]!;
      ys[count++] = y[kept]!;
    }
    i = after;
  }
  return { x: xs.subarray(0, count), y: ys.subarray(0, count) };
}

/** Where the column of `at` ends. The points beyond the edges are columns of their own, `to` is of the last one. */
function borderAfter(at: number, from: number, to: number, width: number): number {
  if (at < from) return from;
  const column = Math.floor((at - from) / width);
  const border = from + (column + 1) * width;
  // What rounding put at or behind its own border belongs to the next column, so that each has one turn.
  const end = border > at ? border : border + width;
  const beyond = to + Number.EPSILON * Math.max(Math.abs(to), 1);
  return at > to ? Infinity : end >= to - width / 2 ? beyond : end;
}

function upperBound(x: Float64Array, value: number): number {
  let at = lowerBound(x, value);
  while (at < x.length && x[at]! <= value) at++;
  return at;
}

/** Which points of one column stay, in order. A gap within a column is too narrow to see; at its ends it stays. */
function keptOf(y: Float64Array, begin: number, end: number): number[] {
  let first = -1;
  let last = -1;
  let least = -1;
  let most = -1;
  for (let i = begin; i < end; i++) {
    const value = y[i]!;
    if (value !== value) continue; // NaN
    if (first < 0) first = least = most = i;
    if (value < y[least]!) least = i;
    if (value > y[most]!) most = i;
    last = i;
  }
  if (first < 0) return [begin];
  const kept = [first];
  for (const next of least < most ? [least, most, last] : [most, least, last]) {
    if (next > kept[kept.length - 1]!) kept.push(next);
  }
  if (first > begin) kept.unshift(begin);
  if (last < end - 1) kept.push(end - 1);
  return kept;
}
