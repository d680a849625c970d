// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import type { Child } from '../../api/client';
import { keptOf } from './pages';
import { axisOf } from './scales';
import { bestOf, filterOf, inOrder, METRIC, placesOf, progressOf, rangeOf, readRanges, writeRanges } from './trial';

function trial(number: number, metric: number | null, state = 'Completed', values: Record<string, string> = {}): Child {
  return {
    step: `trial-${number}`, type: 'command', id: `s.trial-${number}`, state: state as Child['state'], reason: '',
    started: null, ended: null, reused_from: null, values, metric, best: false, children: [], trials: null,
  };
}

describe('bestOf', () => {
  it('is a completed trial, of equal ones the first', () => {
    const trials = [trial(1, 3), trial(2, 1), trial(3, 1), trial(4, 0, 'Canceled'), trial(5, null)];
    expect(bestOf(trials, false)?.step).toBe('trial-2');
    expect(bestOf(trials, true)?.step).toBe('trial-1');
    expect(bestOf([trial(1, null)], true)).toBeNull();
  });
});

describe('progressOf', () => {
  it('has a step where the best became better, and ends at the last trial', () => {
    const { points, steps } = progressOf([trial(1, 3), trial(3, 4), trial(2, 2), trial(4, 1, 'Failed')], false);
    expect(points.map((point) => point.at)).toEqual([1, 2, 3, 4]);
    expect(steps).toEqual([{ at: 1, metric: 3 }, { at: 2, metric: 2 }, { at: 4, metric: 2 }]);
  });
});

describe('filterOf', () => {
  const net = axisOf('net', [], { type: 'choice', values: ['a', 'b', 'c'] });
  const axes = [axisOf('lr', ['0.1', '0.5']), net, axisOf(METRIC, ['1', '9'])];
  const one = trial(1, 5, 'Completed', { lr: '0.3', net: 'b' });
  const keeps = (...texts: string[]) => filterOf(axes, readRanges(texts))(one);
  it('asks each axis that has a range, both ends included', () => {
    expect(keeps()).toBe(true);
    expect(keeps('lr~0.3~0.5', 'net~a~b', '~5~9')).toBe(true);
    expect(keeps('lr~0.31~0.5')).toBe(false);
    expect(keeps('net~c~c')).toBe(false);
  });
  it('leaves out what has no value there', () => {
    expect(filterOf(axes, readRanges(['~1~9']))(trial(2, null))).toBe(false);
  });
});

describe('writeRanges', () => {
  it('is read again, whatever is in a name', () => {
    const ranges = readRanges(writeRanges(new Map([['a~b%7E', ['x~', '%'] as const]])));
    expect([...ranges]).toEqual([['a~b%7E', ['x~', '%']]]);
  });
});

describe('rangeOf', () => {
  it('is what placesOf has places for, whole categories', () => {
    const axis = axisOf('net', [], { type: 'choice', values: ['a', 'b', 'c', 'd'] });
    expect(rangeOf(axis, 0.7, 0.3)).toEqual(['b', 'c']);
    expect(placesOf(axis, ['b', 'c'])).toEqual([0.25, 0.75]);
    expect(rangeOf(axis, 0.25, 0.75)).toEqual(['b', 'c']);
    expect(rangeOf(axisOf('x', ['0', '10']), 0.5, 0.2)).toEqual(['2', '5']);
  });
  it('is none where all is in it', () => {
    expect(rangeOf(axisOf('x', ['0', '10']), -0.1, 1.2)).toBeNull();
  });
});

describe('inOrder', () => {
  const trials = [trial(1, null), trial(2, 5, 'Completed', { b: '9' }), trial(10, 2, 'Completed', { b: '10' })];
  const steps = (by: string, down: boolean) => inOrder(trials, { by, down }).map((one) => one.step.slice(6));
  it('takes numbers by size and puts what is missing last', () => {
    expect(steps('.metric', false)).toEqual(['10', '2', '1']);
    expect(steps('.metric', true)).toEqual(['2', '10', '1']);
    expect(steps('b', false)).toEqual(['2', '10', '1']);
    expect(steps('.number', true)).toEqual(['10', '2', '1']);
  });
});

describe('keptOf', () => {
  it('keeps pages before the first in which something may change', () => {
    const [done, open] = [{ trials: [trial(1, 1)], next: 'x' }, { trials: [trial(2, null, 'Running')], next: 'y' }];
    expect(keptOf([done, open, done])).toEqual([done]);
    expect(keptOf([done, { ...done, next: null }])).toEqual([done]);
  });
});
