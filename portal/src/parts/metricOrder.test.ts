import { expect, test } from 'vitest';
import { byInterest } from './metricOrder';

test('losses and scores come first, the times of a step last', () => {
  const names = ['backward', 'communication', 'evaluation/top1', 'images_per_second', 'learning_rate', 'loss', 'other'];
  expect([...names].sort(byInterest)).toEqual([
    'evaluation/top1', 'loss', 'images_per_second', 'learning_rate', 'backward', 'communication', 'other',
  ]);
});
