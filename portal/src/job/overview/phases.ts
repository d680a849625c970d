// A job's life in phases: what was done for how long.
export interface Event {
  sequence: number;
  time: string;
  state: string;
  reason: string;
}

export interface Phase {
  state: string;
  /** The reasons in it, the oldest first. */
  events: Event[];
  from: number;
  /** Milliseconds, as `from`; up to now of the one that lasts. */
  to: number;
  lasts: boolean;
}

const ENDS = new Set(['Completed', 'Failed', 'Canceled']);

/** The phases that `events`, the oldest first, tell; a state that ends a job takes no time. */
export function phasesOf(events: readonly Event[], now: number): Phase[] {
  const phases: Phase[] = [];
  for (const event of events) {
    const time = Date.parse(event.time);
    const last = phases.at(-1);
    if (last?.state === event.state) {
      last.events.push(event);
      continue;
    }
    if (last) {
      last.to = time;
      last.lasts = false;
    }
    const ends = ENDS.has(event.state);
    const to = ends ? time : Math.max(time, now);
    phases.push({ state: event.state, events: [event], from: time, to, lasts: !ends });
  }
  return phases;
}

/** The parts of a bar, in hundredths, that phases take: each that takes any time can be seen. */
export function widthsOf(phases: readonly Phase[]): number[] {
  const LEAST = 1.5;
  const times = phases.map(({ from, to }) => Math.max(0, to - from));
  const all = times.reduce((sum, time) => sum + time, 0);
  if (all === 0) return times.map(() => 0);
  const wanted = times.map((time) => (time === 0 ? 0 : Math.max(LEAST, (100 * time) / all)));
  const sum = wanted.reduce((total, width) => total + width, 0);
  return wanted.map((width) => (100 * width) / sum);
}
