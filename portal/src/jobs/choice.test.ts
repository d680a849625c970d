import { describe, expect, it } from 'vitest';
import type { JobSummary } from '../api/client';
import { choose, move } from './choice';

const SHOWN = ['a', 'b', 'c', 'd'].map((id) => ({ id }) as JobSummary);

describe('choose', () => {
  it('turns one on and off', () => {
    expect(choose(new Set(['a']), SHOWN, 'b', null)).toEqual(new Set(['a', 'b']));
    expect(choose(new Set(['a', 'b']), SHOWN, 'b', null)).toEqual(new Set(['a']));
  });

  it('takes a range in both directions, and out again', () => {
    expect(choose(new Set(['a']), SHOWN, 'c', 'a')).toEqual(new Set(['a', 'b', 'c']));
    expect(choose(new Set(), SHOWN, 'b', 'd')).toEqual(new Set(['b', 'c', 'd']));
    expect(choose(new Set(['a', 'b', 'c', 'd']), SHOWN, 'c', 'b')).toEqual(new Set(['a', 'd']));
  });

  it('takes the one alone where the other end is not shown', () => {
    expect(choose(new Set(), SHOWN, 'b', 'gone')).toEqual(new Set(['b']));
  });
});

describe('move', () => {
  it('stays within the rows', () => {
    expect(move(SHOWN, null, 1)).toBe('a');
    expect(move(SHOWN, 'a', -1)).toBe('a');
    expect(move(SHOWN, 'c', 1)).toBe('d');
    expect(move(SHOWN, 'd', 1)).toBe('d');
    expect(move(SHOWN, 'gone', 1)).toBe('a');
    expect(move([], 'a', 1)).toBeNull();
  });
});
