import { expect, test } from 'vitest';
import { sentence } from './sentence';

test('begins a reason with a capital, and leaves names as they are', () => {
  expect(sentence('waits for 4 nodes')).toBe('Waits for 4 nodes');
  expect(sentence('canceled')).toBe('Canceled');
  expect(sentence('n2 does not answer')).toBe('n2 does not answer');
  expect(sentence('fit-2 failed')).toBe('fit-2 failed');
  expect(sentence('1 process on 1 node')).toBe('1 process on 1 node');
  expect(sentence('')).toBe('');
});
