// Parallel coordinates (Inselberg 1985): an axis for each parameter and one for the metric, a line for each trial.
// Lines of one kind are one path, so that thousands of trials are a handful of elements.
import type { Axis } from './scales';
import { type Trial, valueOf } from './trial';

export const GRADES = 5;

export interface Frame {
  /** Where the axes stand, from left to right. */
  xs: number[];
  top: number;
  bottom: number;
}

export type Point = readonly [x: number, y: number] | null;

/** A point for each axis; null where the trial has no value. */
export function pointsOf(trial: Trial, axes: Axis[], frame: Frame): Point[] {
  return axes.map((axis, index) => {
    const place = axis.place(valueOf(trial, axis.name));
    return place == null ? null : [frame.xs[index]!, frame.bottom - place * (frame.bottom - frame.top)];
  });
}

export function pathOf(points: Point[]): string {
  let path = '';
  let broken = true;
  for (const point of points) {
    if (point) path += `${broken ? 'M' : 'L'}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    broken = !point;
  }
  return path;
}

/** From 0, the worst, to GRADES - 1, the best, as many of each; trials without the metric have none. */
export function gradesOf(trials: Trial[], maximize: boolean): ReadonlyMap<Trial, number> {
  const sorted = trials.filter((trial) => trial.metric != null).sort((a, b) => a.metric! - b.metric!);
  if (!maximize) sorted.reverse();
  return new Map(sorted.map((trial, index) => [trial, Math.floor((GRADES * index) / sorted.length)]));
}

/** The trial whose line is nearest to a point; null if none is within `reach` above or below it. */
export function nearest(lines: { trial: Trial; points: Point[] }[], x: number, y: number, reach: number): Trial | null {
  let found: Trial | null = null;
  let least = reach;
  for (const { trial, points } of lines) {
    for (let index = 0; index + 1 < points.length; index += 1) {
      const [a, b] = [points[index], points[index + 1]];
      if (!a || !b || x < a[0] || x > b[0]) continue;
      const far = Math.abs(a[1] + ((x - a[0]) / (b[0] - a[0])) * (b[1] - a[1]) - y);
      if (far < least) [least, found] = [far, trial];
    }
  }
  return found;
}
