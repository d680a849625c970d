import { expect, test } from 'vitest';
import { isThinned, metricRows } from './metricsRows';

test('has the course and then the newest points, none twice', () => {
  const course = { step: [0, 4, 8, 10], time: [null, null, null, 1], value: [1, 2, 3, 4] };
  const newest = { step: [8, 9, 10], time: [null, null, 1], value: [3, null, 4] };
  const metric = { name: 'loss', rank: 0, run: null, count: 11, last: 4, step: 10, min: 1, max: 4, course, newest };
  const steps = metricRows([metric]).map((row) => row[3]);
  expect(steps).toEqual(['step', 0, 4, 8, 9, 10]);
  expect(metricRows([metric]).at(-1)).toEqual(['loss', 0, null, 10, '1970-01-01T00:00:01.000Z', 4]);
  expect(isThinned([metric])).toBe(true);
});
