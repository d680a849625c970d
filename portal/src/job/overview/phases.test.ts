import { expect, test } from 'vitest';
import { phasesOf, widthsOf } from './phases';

function event(second: number, state: string, reason = '') {
  return { sequence: second, time: new Date(1000 * second).toISOString(), state, reason };
}

test('events of one state are one phase, and the last lasts until now', () => {
  const phases = phasesOf([event(0, 'Queued'), event(4, 'Running', 'a'), event(6, 'Running', 'b')], 10_000);
  expect(phases.map(({ state, from, to, lasts }) => [state, from, to, lasts])).toEqual([
    ['Queued', 0, 4000, false],
    ['Running', 4000, 10_000, true],
  ]);
  expect(phases[1]!.events.map(({ reason }) => reason)).toEqual(['a', 'b']);
});

test('the end takes no time, and a job that began anew has a phase twice', () => {
  const phases = phasesOf([event(0, 'Running'), event(1, 'Queued'), event(2, 'Running'), event(9, 'Failed')], 99_000);
  expect(phases.map(({ from, to }) => to - from)).toEqual([1000, 1000, 7000, 0]);
  expect(phases.at(-1)!.lasts).toBe(false);
});

test('short phases stay visible, and the widths make up the bar', () => {
  const widths = widthsOf(phasesOf([event(0, 'Queued'), event(1, 'Running'), event(9999, 'Completed')], 0));
  expect(widths[0]).toBeGreaterThan(1);
  expect(widths[2]).toBe(0);
  expect(widths.reduce((sum, width) => sum + width)).toBeCloseTo(100);
  expect(widthsOf([])).toEqual([]);
});
