// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { changesOf } from './code';

const file = (path: string, text: string | null, bytes = text?.length ?? 9) => ({ path, text, bytes });

describe('changesOf', () => {
  it('tells files that came, went and changed, and passes over the same', () => {
    const before = [file('same', 'x'), file('gone', 'y'), file('edited', 'a'), file('model', null, 5)];
    const after = [file('edited', 'b'), file('same', 'x'), file('new', 'z'), file('model', null, 6)];
    expect(changesOf(before, after).map(({ path, kind }) => [path, kind])).toEqual([
      ['edited', 'changed'], ['gone', 'removed'], ['model', 'changed'], ['new', 'added'],
    ]);
  });
});
