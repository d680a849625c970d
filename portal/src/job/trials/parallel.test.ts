import { expect, it } from 'vitest';
import type { Child } from '../../api/client';
import { gradesOf, nearest, pathOf, pointsOf } from './parallel';
import { axisOf } from './scales';
import { METRIC } from './trial';

const trial = (lr: string, metric: number | null) => ({ step: lr, values: { lr }, metric }) as unknown as Child;
const axes = [axisOf('lr', ['0', '10']), axisOf('gone', ['1']), axisOf(METRIC, ['0', '1'])];
const frame = { xs: [0, 50, 100], top: 0, bottom: 100 };

it('draws a line over the axes that have a value', () => {
  expect(pathOf(pointsOf(trial('5', 1), [axes[0]!, axes[2]!], { ...frame, xs: [0, 100] }))).toBe('M0.0 50.0L100.0 0.0');
  expect(pathOf(pointsOf(trial('5', 1), axes, frame))).toBe('M0.0 50.0M100.0 0.0');
});

it('grades by rank, in the direction of the goal', () => {
  const trials = [trial('a', 1e9), trial('b', null), ...[3, 1, 2, 4].map((metric) => trial(`c${metric}`, metric))];
  const grades = (maximize: boolean) => trials.map((one) => gradesOf(trials, maximize).get(one));
  expect(grades(true)).toEqual([4, undefined, 2, 0, 1, 3]);
  expect(grades(false)).toEqual([0, undefined, 2, 4, 3, 1]);
});

it('finds the line under the pointer', () => {
  const two = [axes[0]!, axes[2]!];
  const lines = [trial('0', 0), trial('0', 1)].map((one) => ({
    trial: one, points: pointsOf(one, two, { ...frame, xs: [0, 100] }),
  }));
  expect(nearest(lines, 50, 55, 20)).toBe(lines[1]!.trial);
  expect(nearest(lines, 90, 95, 20)).toBe(lines[0]!.trial);
  expect(nearest(lines, 90, 50, 20)).toBeNull();
});
