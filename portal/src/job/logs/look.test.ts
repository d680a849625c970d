import { expect, test } from 'vitest';
import { contrast, draw } from './look';

test('contrast is as WCAG has it', () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
  expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2);
});

test('text that its own background would hide is black or white', () => {
  expect(draw({ fg: 3, bg: 11 }).style).toEqual({ background: 'rgb(245 245 67)', color: 'rgb(0 0 0)' });
  expect(draw({ fg: [255, 255, 255], bg: [0, 0, 128] }).style?.color).toBe('rgb(255 255 255)');
  expect(draw({ inverse: true }).style?.color).toBe('rgb(0 0 0)');
});

test('text on the page has colours that the page chooses', () => {
  expect(draw({ fg: 1, bold: true })).toEqual({ className: 'log-bold log-color-1', style: undefined });
  expect(draw({ fg: [1, 2, 3] })).toEqual({ className: 'log-color', style: { '--log-color': 'rgb(1 2 3)' } });
  expect(draw({})).toEqual({ className: undefined, style: undefined });
});
