import { describe, expect, it } from 'vitest';
import { edgesOf } from './graph';
import type { StepSpec } from './spec';

const step = (name: string, inputs_from: Record<string, string> = {}): StepSpec => ({ name, inputs_from, job: {} });

describe('edgesOf', () => {
  it('makes one edge of two outputs of a step, and none of the pipeline\'s inputs', () => {
    const steps = [
      step('a', { x: 'inputs.x' }),
      step('b', { p: 'jobs.a.outputs.p', q: 'jobs.a.outputs.q', z: 'jobs.gone.outputs.z' }),
    ];
    expect(edgesOf({ steps })).toEqual([{ from: 'a', to: 'b', takes: ['p', 'q'] }]);
  });
  it('puts the first step before those that wait for nothing, and the last behind those that nothing waits for', () => {
    const steps = [step('init'), step('a'), step('b', { p: 'jobs.a.outputs.p' }), step('end')];
    expect(edgesOf({ steps, first_step: 'init', last_step: 'end' }).map(({ from, to }) => `${from}-${to}`)).toEqual([
      'a-b', 'init-a', 'b-end',
    ]);
  });
});
