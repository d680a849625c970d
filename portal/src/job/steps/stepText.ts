// The words about a step that its box and its row both have.
import type { Child } from '../../api/client';
import { hasEnded } from '../../api/queries';
import { duration, secondsBetween } from '../../parts/format';

/** "47 s"; null before it has started. A reused step has not run. */
export function ran(step: Child, now: number): string | null {
  if (step.reused_from) return null;
  const seconds = secondsBetween(step.started, step.ended, now);
  return seconds == null ? null : duration(seconds);
}

/** What is in a step that is more than a command: "pipeline, 3 of 5 steps". */
export function within(step: Child): string | null {
  if (step.reused_from && step.type !== 'command') return step.type;
  if (step.type === 'sweep') return step.trials ? `sweep, ${step.trials.count} trials` : 'sweep';
  if (step.type !== 'pipeline') return null;
  const done = step.children.filter((child) => child.state === 'Completed').length;
  return step.children.length > 0 ? `pipeline, ${done} of ${step.children.length} steps` : 'pipeline';
}

/** The view of its job to open; null before it has one. */
export function pathOf(step: Child): string | null {
  if (!step.id) return null;
  const view = { command: '', pipeline: '/steps', sweep: '/trials' }[step.type];
  return `/jobs/${encodeURIComponent(step.id)}${view}`;
}

export function isUnderWay(step: Child): boolean {
  return step.started != null && !hasEnded(step.state);
}
