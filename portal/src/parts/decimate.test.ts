import { expect, test } from 'vitest';
import { decimate } from './decimate';
import { aligned, nearest, type Points, pointsOf } from './points';

function wave(count: number): Points {
  const x = Float64Array.from({ length: count }, (_, i) => i);
  // A generator of its own, so that each run sees the same values.
  let seed = 1;
  const y = x.map((at) => {
    seed = (seed * 48271) % 2147483647;
    return Math.sin(at / 5000) + seed / 2147483647;
  });
  return { x, y };
}

test('keeps the extremes of every column exactly', () => {
  const all = wave(100_000);
  const columns = 300;
  const [from, to] = [1234.5, 91_234.25];
  const thin = decimate(all, from, to, columns);
  expect(thin.x.length).toBeLessThanOrEqual(4 * columns + 2);
  const width = (to - from) / columns;
  const extremes = ({ x, y }: Points) => {
    const of = new Map<number, [number, number]>();
    x.forEach((at, i) => {
      if (at < from || at > to) return;
      const column = Math.min(columns - 1, Math.floor((at - from) / width));
      const [least, most] = of.get(column) ?? [Infinity, -Infinity];
      of.set(column, [Math.min(least, y[i]!), Math.max(most, y[i]!)]);
    });
    return [...of.values()];
  };
  expect(extremes(thin)).toEqual(extremes(all));
  expect(thin.x.every((at, i) => i === 0 || at > thin.x[i - 1]!)).toBe(true);
});

test('keeps a single spike among a million points, and one point beyond each edge', () => {
  const all = wave(1_000_000);
  all.y[700_001] = 1e6;
  all.y[300_003] = -1e6;
  const thin = decimate(all, 10, 999_989, 800);
  expect(Math.max(...thin.y)).toBe(1e6);
  expect(Math.min(...thin.y)).toBe(-1e6);
  expect(thin.x[0]).toBe(9);
  expect(thin.x.at(-1)).toBe(999_990);
});

test('gives few points as they are', () => {
  const few = pointsOf([1, 2, 3, 4], [1, null, 3, 4]);
  expect([...decimate(few, 2, 3, 100).y]).toEqual([1, NaN, 3, 4]);
  expect(decimate(pointsOf([], []), 0, 1, 100).x.length).toBe(0);
});

test('keeps a gap that is wider than a column and no value within it', () => {
  const all = wave(100_000);
  all.y.fill(NaN, 40_000, 60_000);
  const thin = decimate(all, 0, 99_999, 100);
  const inside = [...thin.y].filter((_, i) => thin.x[i]! >= 40_000 && thin.x[i]! < 60_000);
  expect(inside.length).toBeGreaterThan(0);
  expect(inside.every(Number.isNaN)).toBe(true);
  expect([...thin.y].filter(Number.isNaN).length).toBe(inside.length);
});

test('sorts points, and of those with one x takes the last', () => {
  const points = pointsOf([0, 10, 20, 10, 20, null, 30], [1, 2, 3, 4, 5, 6, null]);
  expect([...points.x]).toEqual([0, 10, 20, 30]);
  expect([...points.y]).toEqual([1, 4, 5, NaN]);
  expect(nearest(points, 14)).toBe(1);
  expect(nearest(points, 99)).toBe(3);
});

test('aligns curves: null is a gap, undefined no point', () => {
  const [x, a, b] = aligned([pointsOf([1, 3], [1, null]), pointsOf([2, 3], [5, 6])]);
  expect([...x]).toEqual([1, 2, 3]);
  expect([...a!]).toEqual([1, undefined, null]);
  expect([...b!]).toEqual([undefined, 5, 6]);
});
