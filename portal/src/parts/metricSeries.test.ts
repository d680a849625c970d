import { expect, test } from 'vitest';
import { resolved } from './chartSeries';
import { byPrefix, chartsOf, matches, type Metric, seriesOf } from './metricSeries';

const none = { step: [], time: [], value: [] };

function metric(change: Partial<Metric>): Metric {
  const base = { name: 'loss', rank: 0, run: null, count: 0, last: null, step: null, min: null, max: null };
  return { ...base, course: none, newest: none, ...change };
}

test('shows the newest points where they hold all that is visible, else the whole', () => {
  const long = metric({
    count: 1001,
    course: { step: [0, 500, 1000], time: [null, null, null], value: [3, 2, 1] },
    newest: { step: [998, 999, 1000], time: [null, null, null], value: [1.2, null, 1] },
  });
  const series = seriesOf({ key: 'a', name: 'a', color: 0, metric: long }, 'step', 0);
  expect([...resolved(series, [0, 1000]).points.x]).toEqual([0, 500, 1000]);
  expect([...resolved(series, [998, 1000]).points.y]).toEqual([1.2, NaN, 1]);
});

test('takes the newest alone where they are all', () => {
  const columns = { step: [0, 1], time: [10, 11], value: [3, 2] };
  const short = metric({ count: 2, course: columns, newest: columns });
  const series = seriesOf({ key: 'a', name: 'a', color: 0, metric: short, began: 9 }, 'elapsed', 0);
  expect(series.detail).toBeUndefined();
  expect([...series.points.x]).toEqual([1, 2]);
});

test('counts lines that tell no step', () => {
  const nulls = [null, null, null];
  const plain = metric({ count: 21, course: { step: nulls, time: nulls, value: [5, 6, 7] } });
  expect([...seriesOf({ key: 'a', name: 'a', color: 0, metric: plain }, 'step', 0).points.x]).toEqual([0, 10, 20]);
});

test('makes a chart of a name with a curve for each rank, and groups of prefixes', () => {
  const all = [metric({ name: 'train/loss' }), metric({ name: 'train/loss', rank: 1 }), metric({ name: 'lr' })];
  const charts = chartsOf(all, 'step', 0);
  expect(charts.map(({ name, series }) => [name, series.map((one) => one.name)])).toEqual([
    ['train/loss', ['rank 0', 'rank 1']],
    ['lr', ['lr']],
  ]);
  expect(byPrefix(charts).map(([prefix, { length }]) => [prefix, length])).toEqual([['', 1], ['train', 1]]);
  expect(matches('train/Loss', 'loss tr')).toBe(true);
});
