import { expect, test } from 'vitest';
import { elapsedTick, tick, written } from './units';

test('writes values with their unit', () => {
  expect(written('bytes/s', 1536)).toBe('1.5 KiB/s');
  expect(written('share', 0.8712)).toBe('87.12 %');
  expect(written('cores', 1)).toBe('1 core');
  expect(written('number', null)).toBe('–');
});

test('writes ticks with as many digits as tell them apart', () => {
  expect(tick('number', 0.05, 0.01)).toBe('0.05');
  expect(tick('number', 2, 0.5)).toBe('2.0');
  expect(tick('number', 0.00002, 0.00001)).toBe('2e-5');
  expect(tick('number', 0, 0.00001)).toBe('0');
  expect(tick('bytes', 1.5 * 1024 ** 3, 2 ** 29)).toBe('1.5 GiB');
  expect(tick('bytes', 2 ** 31, 2 ** 29)).toBe('2 GiB');
  expect(tick('share', 0.25, 0.05)).toBe('25 %');
  expect(elapsedTick(90)).toBe('1:30');
  expect(elapsedTick(7260)).toBe('2:01 h');
});
