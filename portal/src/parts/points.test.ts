import { expect, test } from 'vitest';
import { aligned, nearest, pointsOf, smooth, withGaps } from './points';

test('sorts points, and of those with one x takes the last, with what its span holds', () => {
  const counts = [0, 0, 0, 0, 3, 0, 1];
  const low = [0, 1, 2, 3, 4, 5, null];
  const spans = { low, high: low, not_finite: counts };
  const points = pointsOf([0, 10, 20, 10, 20, null, 30], [1, 2, 3, 4, 5, 6, null], spans);
  expect([...points.x]).toEqual([0, 10, 20, 30]);
  expect([...points.y]).toEqual([1, 4, 5, NaN]);
  expect([...points.low!]).toEqual([0, 3, 4, NaN]);
  expect([...points.notFinite!]).toEqual([0, 0, 3, 1]);
  expect(nearest(points, 14)).toBe(1);
  expect(nearest(points, 99)).toBe(3);
});

test('breaks a curve before a span in which a value is not finite, and not twice where its last is none', () => {
  const low = [1, 2, 3, null];
  const points = pointsOf([0, 10, 20, 30], [1, 2, 3, null], { low, high: low, not_finite: [0, 1, 0, 2] });
  const { x, y } = withGaps(points);
  expect([...x]).toEqual([0, 5, 10, 20, 30]);
  expect([...y]).toEqual([1, NaN, 2, 3, NaN]);
});

test('aligns curves: null is a gap, undefined no point', () => {
  const [x, a, b] = aligned([pointsOf([1, 3], [1, null]), pointsOf([2, 3], [5, 6])]);
  expect([...x]).toEqual([1, 2, 3]);
  expect([...a!]).toEqual([1, undefined, null]);
  expect([...b!]).toEqual([undefined, 5, 6]);
});

test('smooths by a weighted mean of what has been seen, without a bias to zero', () => {
  const { y } = smooth(pointsOf([0, 1, 2, 3], [4, 8, null, 2]), 0.5);
  expect(y[0]).toBeCloseTo(4);
  expect(y[1]).toBeCloseTo((4 * 0.5 + 8) / 1.5);
  expect(y[2]).toBeNaN();
  expect(y[3]).toBeCloseTo((4 * 0.25 + 8 * 0.5 + 2) / 1.75);
});
