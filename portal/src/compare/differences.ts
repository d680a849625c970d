// What jobs were given, side by side.
import type { Job, Schemas } from '../api/client';

export interface Row {
  name: string;
  /** One a job; undefined: it has none. */
  values: (string | undefined)[];
  differs: boolean;
}

/** What is known of a job: a step or trial has no submission of its own, and a trial has values instead. */
export interface Given {
  job: Job;
  submission: Schemas['JobSubmission'] | null;
  trial: Record<string, string> | null;
}

// Where the job was written down is no parameter of it.
const NO_PARAMETER = /(^|_)line$|^(directory|file_name|display_name|name|description)$/;
const FIRST = [
  'command', 'search_space', 'params', 'inputs', 'environment_variables', 'environment',
  'resources', 'instance_count', 'distribution', 'code', 'git_commit', 'git_branch', 'tags',
];

/** A row for each thing that any of them was given: those that differ first, then as one reads a job file. */
export function differences(all: readonly Given[]): Row[] {
  const maps = all.map(parameters);
  const names = [...new Set(maps.flatMap((map) => [...map.keys()]))];
  const rows = names.map((name) => {
    const values = maps.map((map) => map.get(name));
    return { name, values, differs: values.some((value) => value !== values[0]) };
  });
  const place = ({ name }: Row) => {
    const at = FIRST.indexOf(name.split('.')[0]!);
    return at < 0 ? FIRST.length : at;
  };
  return rows.sort(
    (a, b) => Number(b.differs) - Number(a.differs) || place(a) - place(b) || (a.name < b.name ? -1 : 1),
  );
}

/** All that a job was given, by name: "distribution.type". */
export function parameters({ job, submission, trial }: Given): Map<string, string> {
  const { command, environment, tags, priority, compute, experiment_name, node_count } = job;
  const shown = { command, environment: { name: environment }, tags, priority, compute, experiment_name };
  const rows = flattened(submission?.job ?? { ...shown, instance_count: node_count });
  const origin = submission?.origin ?? job.origin;
  const code = submission?.snapshot ?? job.snapshot;
  if (code) rows.set('code content', code.replace('sha256:', '').slice(0, 12));
  for (const [name, value] of Object.entries(origin)) rows.set(name, value);
  for (const [name, value] of Object.entries(trial ?? {})) rows.set(`search_space.${name}`, value);
  for (const { name, value } of job.logged.params) rows.set(`params.${name}`, value);
  return rows;
}

/** The leaves of a value, by their path; what is empty is left out. */
export function flattened(value: unknown, path = '', into = new Map<string, string>()): Map<string, string> {
  if (value === null || value === undefined || value === '') return into;
  if (Array.isArray(value) && value.every((member) => typeof member !== 'object')) {
    if (value.length > 0) into.set(path, value.join(', '));
  } else if (typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) {
      if (path === '' && NO_PARAMETER.test(key)) continue;
      flattened(member, path === '' ? key : `${path}.${key}`, into);
    }
  } else into.set(path, String(value));
  return into;
}

export interface Piece {
  text: string;
  differs: boolean;
}

/** A command in words, and which of them another one does not have at their place; long runs stay together. */
export function pieces(text: string, others: readonly (string | undefined)[]): Piece[] {
  const words = text.split(/(\s+)/);
  const compared = others.filter((other) => other !== undefined).map((other) => other.split(/(\s+)/));
  const found: Piece[] = [];
  words.forEach((word, i) => {
    const differs = word.trim() !== '' && compared.some((other) => other[i] !== word);
    const last = found.at(-1);
    if (last && last.differs === differs) last.text += word;
    else found.push({ text: word, differs });
  });
  return found;
}
