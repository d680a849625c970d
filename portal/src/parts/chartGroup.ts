// Charts of one page that share their x: the visible part of it, and the place of the crosshair.
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { Range } from './points';

export interface Crosshair {
  x: number;
  /** The chart whose keys moved it; undefined: a pointer did. */
  by?: string;
}

type Change = 'range' | 'settled' | 'crosshair';

const SETTLED = 300; // milliseconds without a change
let groups = 0;

export class ChartGroup {
  /** Under which uplot synchronises the crosshairs. */
  readonly key = `charts-${groups++}`;
  range: Range | null; // null: all
  /** The range that has not changed for a while. */
  settled: Range | null;
  crosshair: Crosshair | null = null;
  private extent: Range | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly watchers = new Set<(what: Change) => void>();

  constructor(range: Range | null = null) {
    this.range = this.settled = range;
  }

  watch(watcher: (what: Change) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** What there is in all. A range that someone chose stays. */
  setExtent(extent: Range | null): void {
    if (extent?.[0] === this.extent?.[0] && extent?.[1] === this.extent?.[1]) return;
    this.extent = extent;
    if (!this.range) this.tell('range');
  }

  /** What a chart shows: from below to. */
  get visible(): Range {
    const [from, to] = this.range ?? this.extent ?? [0, 1];
    return to > from ? [from, to] : [from - 0.5, to + 0.5];
  }

  setRange(range: Range | null): void {
    this.range = range && range[1] > range[0] ? this.within(range) : null;
    this.tell('range');
    clearTimeout(this.timer);
    if (this.range) this.timer = setTimeout(() => this.settle(), SETTLED);
    else this.settle();
  }

  /** Makes the visible part `factor` as wide around its middle, or around `at`. */
  zoom(factor: number, at?: number): void {
    const [from, to] = this.visible;
    const middle = at ?? (from + to) / 2;
    this.setRange([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  /** Moves the visible part by this share of its width. */
  pan(share: number): void {
    if (!this.range) return;
    const width = this.range[1] - this.range[0];
    this.shift([this.range[0] + share * width, this.range[1] + share * width]);
  }

  /** Moves the visible part to a range of the same width, as far as there is anything. */
  shift([from, to]: Range): void {
    const width = to - from;
    const [least, most] = this.extent ?? [from, to];
    const begin = Math.max(least, Math.min(from, most - width));
    this.setRange([begin, begin + width]);
  }

  setCrosshair(crosshair: Crosshair | null): void {
    this.crosshair = crosshair;
    this.tell('crosshair');
  }

  private within([from, to]: Range): Range | null {
    if (!this.extent) return [from, to];
    const cut: Range = [Math.max(from, this.extent[0]), Math.min(to, this.extent[1])];
    const all = cut[0] <= this.extent[0] && cut[1] >= this.extent[1];
    return all || cut[1] <= cut[0] ? null : cut;
  }

  private settle(): void {
    if (this.settled === this.range) return;
    this.settled = this.range;
    this.tell('settled');
  }

  private tell(what: Change): void {
    for (const watcher of this.watchers) watcher(what);
  }
}

/** A group over `extent`, which shows `range` first; `onSettle` is called with what one has come to see. */
export function useChartGroup(
  extent: Range | null,
  range: Range | null = null,
  onSettle?: (range: Range | null) => void,
): ChartGroup {
  const [group] = useState(() => new ChartGroup(range));
  const settle = useRef(onSettle);
  useEffect(() => {
    settle.current = onSettle;
  });
  useEffect(() => group.setExtent(extent), [group, extent]);
  useEffect(() => group.watch((what) => what === 'settled' && settle.current?.(group.settled)), [group]);
  return group;
}

/** The part of a group's axis that has been visible for a while; null: all. */
export function useSettledRange(group: ChartGroup): Range | null {
  return useSyncExternalStore((changed) => group.watch(changed), () => group.settled);
}

/** Whether a part is shown and not all. */
export function useZoomed(group: ChartGroup): boolean {
  return useSyncExternalStore((changed) => group.watch(changed), () => group.range !== null);
}
