import { expect, test } from 'vitest';
import { pointsOf } from './points';
import { smooth } from './smooth';

test('is a weighted mean of what has been seen, without a bias to zero', () => {
  const { y } = smooth(pointsOf([0, 1, 2], [4, 8, 2]), 0.5);
  expect(y[0]).toBeCloseTo(4);
  expect(y[1]).toBeCloseTo((4 * 0.5 + 8) / 1.5);
  expect(y[2]).toBeCloseTo((4 * 0.25 + 8 * 0.5 + 2) / 1.75);
});

test('leaves a constant and gaps as they are', () => {
  const { y } = smooth(pointsOf([0, 1, 2, 3], [7, 7, null, 7]), 0.9);
  expect([y[0], y[1], y[3]].every((value) => Math.abs(value! - 7) < 1e-12)).toBe(true);
  expect(y[2]).toBeNaN();
});

test('of weight zero is the curve itself', () => {
  const points = pointsOf([0, 1], [1, 2]);
  expect(smooth(points, 0)).toBe(points);
});
