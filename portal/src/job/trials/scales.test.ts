import { describe, expect, it } from 'vitest';
import { axisOf, linearMarks, logMarks } from './scales';

describe('axisOf', () => {
  it('is logarithmic where values span decades', () => {
    const axis = axisOf('lr', ['0.0001', '0.01', '1']);
    expect(axis.kind).toBe('log');
    expect(axis.place('0.01')).toBeCloseTo(0.5);
    expect(axis.valueAt(0.5)).toBe('0.01');
    expect(axis.ticks.map((tick) => tick.label)).toEqual(['0.0001', '0.001', '0.01', '0.1', '1']);
  });
  it('is linear where they do not, or are not positive', () => {
    expect(axisOf('x', ['1', '50']).kind).toBe('linear');
    expect(axisOf('x', ['-1', '1000']).kind).toBe('linear');
    expect(axisOf('x', ['0', '10']).place('2.5')).toBeCloseTo(0.25);
  });
  it('is as its search space is, whatever values were drawn', () => {
    expect(axisOf('x', ['0.00001', '0.5'], { type: 'uniform', values: [] }).kind).toBe('linear');
    expect(axisOf('x', ['0.1', '0.5'], { type: 'loguniform', values: [] }).kind).toBe('log');
    expect(axisOf('x', ['0', '0.5'], { type: 'qloguniform', values: [] }).kind).toBe('linear');
  });
  it('has one place for each choice, numbers by their size', () => {
    const axis = axisOf('batch', ['128'], { type: 'choice', values: ['16', '128', '32'] });
    expect(axis.kind).toBe('category');
    expect(axis.ticks.map((tick) => tick.label)).toEqual(['16', '32', '128']);
    expect(axis.place('32')).toBeCloseTo(0.5);
    expect(axis.valueAt(0.99)).toBe('128');
    expect(axis.place('64')).toBeNull();
  });
  it('has a place in its middle for one value, and none for what is missing', () => {
    expect(axisOf('x', ['3', '3']).place('3')).toBeCloseTo(0.5);
    expect(axisOf('x', ['0']).place('0')).toBeCloseTo(0.5);
    expect(axisOf('x', ['1', null, '2']).place(null)).toBeNull();
    expect(axisOf('x', []).place('0.5')).toBeCloseTo(0.5);
  });
});

describe('marks', () => {
  it('are round numbers between both ends', () => {
    expect(linearMarks(0.03, 1.01)).toEqual([0.2, 0.4, 0.6, 0.8, 1]);
    expect(linearMarks(-3, 3)).toEqual([-2, 0, 2]);
    expect(logMarks(1e-20, 1)).toHaveLength(7);
    expect(logMarks(0.015, 0.4)).toEqual([0.02, 0.05, 0.1, 0.2]);
  });
});
