// The trials of a sweep: which is the best, how the best came about, which one looks at.
import type { Child } from '../../api/client';
import { secondsBetween } from '../../parts/format';
import type { Axis } from './scales';

export type Trial = Child;

export function numberOf(trial: Trial): number {
  return Number(/(\d+)$/.exec(trial.step)?.[1] ?? 0);
}

/** Only what has completed counts, as in the service. */
export function counts(trial: Trial): boolean {
  return trial.state === 'Completed' && trial.metric != null;
}

export function bestOf(trials: Trial[], maximize: boolean): Trial | null {
  let best: Trial | null = null;
  for (const trial of trials) {
    if (counts(trial) && (!best || isBetter(trial.metric!, best.metric!, maximize))) best = trial;
  }
  return best;
}

export function isBetter(a: number, b: number, maximize: boolean): boolean {
  return maximize ? a > b : a < b;
}

export interface Progress {
  /** By trial that has a metric, in their order. */
  points: { trial: Trial; at: number; metric: number }[];
  /** Where the best so far became better, and how it stood at the last trial. */
  steps: { at: number; metric: number }[];
}

/** How the best metric has become better from trial to trial. */
export function progressOf(trials: Trial[], maximize: boolean): Progress {
  const points = trials
    .filter((trial) => trial.metric != null)
    .map((trial) => ({ trial, at: numberOf(trial), metric: trial.metric! }))
    .sort((a, b) => a.at - b.at);
  const steps: Progress['steps'] = [];
  for (const { trial, at, metric } of points) {
    const last = steps.at(-1);
    if (counts(trial) && (!last || isBetter(metric, last.metric, maximize))) steps.push({ at, metric });
  }
  const [last, end] = [steps.at(-1), points.at(-1)];
  if (last && end && end.at > last.at) steps.push({ at: end.at, metric: last.metric });
  return { points, steps };
}

/** What each parameter may be; by name, from the lowest to the highest value. */
export type Ranges = ReadonlyMap<string, readonly [string, string]>;

/** The places of a range on its axis; null where it has no meaning there any more. */
export function placesOf(axis: Axis, range: readonly [string, string] | undefined): [number, number] | null {
  if (!range) return null;
  const [low, high] = [axis.place(range[0]), axis.place(range[1])];
  if (low == null || high == null) return null;
  const half = axis.kind === 'category' ? axis.step / 2 : 0;
  return [Math.min(low, high) - half, Math.max(low, high) + half];
}

/** Whether a trial is within all ranges. */
export function filterOf(axes: Axis[], ranges: Ranges): (trial: Trial) => boolean {
  const asked = axes.flatMap((axis) => {
    const places = placesOf(axis, ranges.get(axis.name));
    return places ? [{ axis, low: places[0] - 1e-6, high: places[1] + 1e-6 }] : [];
  });
  return (trial) =>
    asked.every(({ axis, low, high }) => {
      const place = axis.place(valueOf(trial, axis.name));
      return place != null && place >= low && place <= high;
    });
}

// A parameter may have the metric's name, so the metric's axis has one that no parameter can have.
export const METRIC = '';

export function valueOf(trial: Trial, axis: string): string | null {
  if (axis === METRIC) return trial.metric == null ? null : String(trial.metric);
  return trial.values[axis] ?? null;
}

export function readRanges(texts: string[]): Ranges {
  return new Map(
    texts.flatMap((text) => {
      const [name, low, high] = text.split('~').map(decode);
      return name == null || low == null || high == null ? [] : [[name, [low, high] as const] as const];
    }),
  );
}

export function writeRanges(ranges: Ranges): string[] {
  return [...ranges].map(([name, [low, high]]) => [name, low, high].map(encode).join('~'));
}

const encode = (text: string) => text.replaceAll('%', '%25').replaceAll('~', '%7E');
const decode = (text: string) => text.replaceAll('%7E', '~').replaceAll('%25', '%');

export interface Order {
  by: string;
  down: boolean;
}

/** Trials without a value come last, in either direction. */
export function inOrder(trials: Trial[], { by, down }: Order): Trial[] {
  const keys = new Map(trials.map((trial) => [trial, keyOf(trial, by)]));
  return [...trials].sort((a, b) => {
    const [x, y] = [keys.get(a)!, keys.get(b)!];
    if (x === null || y === null) return x === y ? numberOf(a) - numberOf(b) : x === null ? 1 : -1;
    const size = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
    return (down ? -size : size) || numberOf(a) - numberOf(b);
  });
}

/** Columns that are no parameter begin with a dot. */
function keyOf(trial: Trial, by: string): string | number | null {
  if (by === '.number') return numberOf(trial);
  if (by === '.metric') return trial.metric;
  if (by === '.state') return trial.state;
  if (by === '.ran') return secondsBetween(trial.started, trial.ended);
  const value = trial.values[by];
  if (value == null) return null;
  return value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
}

/** The values between two places of an axis; null: that is all of it. */
export function rangeOf(axis: Axis, a: number, b: number): readonly [string, string] | null {
  const [low, high] = [Math.max(0, Math.min(a, b)), Math.min(1, Math.max(a, b))];
  if (low <= 0 && high >= 1) return null;
  if (axis.kind !== 'category') return [axis.valueAt(low), axis.valueAt(high)];
  const inside = axis.step / 100; // the end of one category is the beginning of the next
  return [axis.valueAt(low + inside), axis.valueAt(Math.max(low + inside, high - inside))];
}
