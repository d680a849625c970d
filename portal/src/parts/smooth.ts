// Exponential smoothing as TensorBoard does it: a moving mean that begins at zero, divided by the weight that it
// has seen so far, so that the first values count in full.
import type { Points } from './points';

/** `weight`: 0 (nothing is smoothed) to below 1. Gaps stay, and do not count. */
export function smooth(points: Points, weight: number): Points {
  if (weight <= 0) return points;
  const y = new Float64Array(points.y.length);
  let mean = 0;
  let seen = 1; // weight to the power of the number of values
  for (let i = 0; i < y.length; i++) {
    const value = points.y[i]!;
    if (Number.isNaN(value)) {
      y[i] = NaN;
      continue;
    }
    mean = mean * weight + (1 - weight) * value;
    seen *= weight;
    y[i] = mean / (1 - seen);
  }
  return { x: points.x, y };
}
