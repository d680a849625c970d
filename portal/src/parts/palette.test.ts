import { expect, test } from 'vitest';
import { BACKGROUND, COLORS, type Scheme } from './palette';

// Machado, Oliveira, Fernandes 2009, severity 1.
const SEEN_BY = [
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
];
const TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];

const times = (matrix: number[][], v: number[]) => matrix.map((row) => row.reduce((sum, m, i) => sum + m * v[i]!, 0));

function linear(color: string): number[] {
  return [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
}

function lab(rgb: number[]): number[] {
  const xyz = times(TO_XYZ, rgb.map((part) => Math.min(1, Math.max(0, part))));
  const [x, y, z] = xyz.map((part, i) => {
    const share = part / [0.9505, 1, 1.089][i]!;
    return share > 0.008856 ? Math.cbrt(share) : 7.787 * share + 16 / 116;
  }) as [number, number, number];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function contrast(a: string, b: string): number {
  const [dark, bright] = [a, b].map((color) => times(TO_XYZ, linear(color))[1]!).sort((p, q) => p - q);
  return (bright! + 0.05) / (dark! + 0.05);
}

test.each(['light', 'dark'] as Scheme[])('%s: all see the curves and tell them apart', (scheme) => {
  for (const color of COLORS[scheme]) expect(contrast(color, BACKGROUND[scheme])).toBeGreaterThan(3);
  for (const seen of SEEN_BY) {
    const colors = COLORS[scheme].map((color) => lab(times(seen, linear(color))));
    colors.forEach((a, i) =>
      colors.slice(0, i).forEach((b) => {
        expect(Math.hypot(...a.map((part, k) => part - b[k]!))).toBeGreaterThan(20);
      }),
    );
  }
});
