// Which step of a pipeline waits for which.
import type { JobSpec } from './spec';

export interface Edge {
  from: string;
  to: string;
  /** What is taken: names of outputs; empty where one only goes before the other. */
  takes: string[];
}

const OF_A_STEP = /^jobs\.(.+)\.outputs\.([^.]+)$/;

export function edgesOf(spec: JobSpec): Edge[] {
  const steps = spec.steps ?? [];
  const known = new Set(steps.map((step) => step.name));
  const edges = new Map<string, Edge>();
  const add = (from: string, to: string, take?: string) => {
    if (!known.has(from) || !known.has(to) || from === to) return;
    const key = JSON.stringify([from, to]);
    const edge = edges.get(key) ?? { from, to, takes: [] };
    if (take && !edge.takes.includes(take)) edge.takes.push(take);
    edges.set(key, edge);
  };
  for (const step of steps) {
    for (const source of Object.values(step.inputs_from)) {
      const [, from, output] = OF_A_STEP.exec(source) ?? [];
      if (from) add(from, step.name, output);
    }
  }
  const { first_step: first, last_step: last } = spec;
  const data = [...edges.values()];
  for (const { name } of steps) {
    if (first && name !== last && !data.some((edge) => edge.to === name)) add(first, name);
    if (last && name !== first && !data.some((edge) => edge.from === name)) add(name, last);
  }
  return [...edges.values()];
}
