import { expect, test } from 'vitest';
import type { Job, Schemas } from '../api/client';
import { bestOf, betterBy } from './best';
import { differences, flattened, type Given, pieces } from './differences';

function given(job: Record<string, unknown>, params: Record<string, string> = {}): Given {
  const logged = { params: Object.entries(params).map(([name, value]) => ({ name, value })) };
  const view = { origin: {}, snapshot: null, logged } as unknown as Job;
  const submission = { job, origin: {}, snapshot: null } as unknown as Schemas['JobSubmission'];
  return { job: view, submission, trial: null };
}

test('flattens a job, without what is empty or no parameter', () => {
  const environment = { packages: [], name: 'host', options: ['x', 'y'] };
  const job = { command: 'a', command_line: 7, inputs: {}, environment };
  expect([...flattened(job)]).toEqual([
    ['command', 'a'],
    ['environment.name', 'host'],
    ['environment.options', 'x, y'],
  ]);
});

test('puts what differs first, and counts what one of them lacks', () => {
  const rows = differences([
    given({ command: 'train 0.1', distribution: { type: 'pytorch' }, instance_count: 2 }, { lr: '0.1' }),
    given({ command: 'train 0.2', distribution: { type: 'pytorch' }, instance_count: 2, tags: { team: 'vision' } }),
  ]);
  expect(rows.map(({ name, differs }) => [name, differs])).toEqual([
    ['command', true],
    ['params.lr', true],
    ['tags.team', true],
    ['instance_count', false],
    ['distribution.type', false],
  ]);
  expect(rows[2]!.values).toEqual([undefined, 'vision']);
});

test('takes the view of a job that has no submission, and the values of a trial', () => {
  const shown = { command: 'a', node_count: 2, tags: {}, origin: {} };
  const job = { ...shown, snapshot: 'sha256:0123456789abcdef', logged: { params: [] } };
  const rows = differences([{ job: job as unknown as Job, submission: null, trial: { lr: '0.1' } }]);
  expect(rows.map(({ name, values }) => [name, values[0]])).toEqual([
    ['command', 'a'],
    ['search_space.lr', '0.1'],
    ['instance_count', '2'],
    ['code content', '0123456789ab'],
  ]);
});

test('marks the words of a command that differ', () => {
  expect(pieces('train 40 0.1 x', ['train 40 0.2 x', undefined])).toEqual([
    { text: 'train 40 ', differs: false },
    { text: '0.1', differs: true },
    { text: ' x', differs: false },
  ]);
});

test('knows from a name which values are better', () => {
  const of = (...names: string[]) => new Set(names.map(betterBy));
  expect(of('train/loss', 'val_loss', 'step_seconds', 'WER')).toEqual(new Set(['low']));
  expect(of('images_per_second', 'val/accuracy', 'top5', 'map50')).toEqual(new Set(['high']));
  expect(of('lr', 'epoch')).toEqual(new Set(['none']));
  expect([...bestOf([2, 1, null, 1], 'low')]).toEqual([1, 3]);
  expect(bestOf([2, null], 'high').size).toBe(0);
});
