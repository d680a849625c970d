import { expect, test } from 'vitest';
import { drawn, marksOf, partsOf, resolved, summaryOf, valueAt } from './chartSeries';
import { axesOf, byPrefix, chartsOf, matches, type Metric, seriesOf } from './metricSeries';

const NONE = new Set<string>();

function metric(change: Partial<Metric>, value: (number | null)[] = [], more: Partial<Metric['course']> = {}): Metric {
  const nulls = value.map(() => null);
  const course = { step: nulls, time: nulls, value, low: value, high: value, not_finite: value.map(() => 0), ...more };
  const base = { name: 'loss', rank: 0, run: null, last: null, step: null, min: null, max: null };
  const rest = { count: value.length, not_finite: 0, first_not_finite: null, last_not_finite: null, span: 1, first: 0 };
  return { ...base, ...rest, course, newest: { step: [], time: [], value: [], not_finite: [] }, ...change };
}

const source = (of: Metric) => ({ key: 'a', name: 'loss', color: 0, job: 'j', metric: of });

// 12 points in spans of four, with a spike and a NaN in the second; then its points one by one.
const long = metric({ count: 12, span: 4, not_finite: 1 }, [1, 1.5, 2], {
  step: [3, 7, 11], low: [0.5, 1, 1.5], high: [1.5, 50, 2.5], not_finite: [0, 1, 0],
});
const part = metric({ count: 12, first: 4, not_finite: 1 }, [1.25, 50, null, 1.5], {
  step: [4, 5, 6, 7], not_finite: [0, 0, 1, 0],
});

test('draws a band from the least to the greatest of each span, smoothed or not', () => {
  for (const smoothing of [0, 0.9]) {
    const series = seriesOf(source(long), 'step', smoothing);
    const parts = partsOf(series);
    const [x, ...columns] = drawn([series], NONE, [0, 11], false);
    const of = (name: string) => columns[parts.indexOf(name as 'low')]!.filter((_, i) => [3, 7, 11].includes(x[i]!));
    expect(of('low')).toEqual([0.5, 1, 1.5]);
    expect(of('high')).toEqual([1.5, 50, 2.5]);
    expect(of(smoothing > 0 ? 'raw' : 'curve')).toEqual([1, 1.5, 2]);
    if (smoothing > 0) expect(of('curve')[2]).toBeCloseTo((0.1 * (0.81 + 0.9 * 1.5 + 2)) / (1 - 0.729));
  }
  expect(partsOf(seriesOf(source(part), 'step', 0))).toEqual(['curve']);
});

test('breaks the curve where a value is not finite, marks the place and counts', () => {
  const series = seriesOf(source({ ...long, last_not_finite: '-inf' }), 'step', 0);
  const [x, , , curve] = drawn([series], NONE, [0, 11], false);
  expect([...x].filter((_, i) => curve![i] === null)).toEqual([5]);
  expect(marksOf([series], NONE, [0, 11])).toEqual([7]);
  expect(marksOf([series], NONE, [8, 11])).toEqual([]);
  expect(summaryOf([series], 'number', 'step')).toBe(
    'loss: step 3 to step 11, least 0.5, greatest 50, last -Infinity; 1 value is not finite.',
  );
  expect(valueAt(series, null, [0, 11], 'number').value).toBe('-Infinity');
  expect(valueAt(series, 7.5, [0, 11], 'number').value).toBe('1.5, 1 to 50, 1 not finite');
});

test('shows each point of a part that has been fetched, and the whole around it', () => {
  const series = seriesOf(source(long), 'step', 0, { metric: part, covers: [4.5, 6.5] });
  expect([...resolved(series, [0, 11]).points.x]).toEqual([3, 7, 11]);
  expect([...resolved(series, [5, 6]).points.x]).toEqual([4, 5, 6, 7]);
  expect(valueAt(series, 5, [4.5, 6.5], 'number').value).toBe('50');
  expect(valueAt(series, 6, [4.5, 6.5], 'number').value).toBe('not finite');
});

test('counts lines that tell no step, and takes time from the beginning of the job', () => {
  const plain = metric({ count: 21, span: 10 }, [5, 6, 7]);
  expect([...seriesOf(source(plain), 'step', 0).points.x]).toEqual([9, 19, 20]);
  const timed = metric({}, [3, 2], { time: [10, 11] });
  expect([...seriesOf({ ...source(timed), began: 9 }, 'elapsed', 0).points.x]).toEqual([1, 2]);
  const late = metric({}, [2], { time: [11] });
  expect([...seriesOf(source(timed), 'elapsed', 0, { metric: late, covers: [1, 2] }).detail!.points.x]).toEqual([1]);
});

test('makes a chart of a name with a curve for each rank, and groups of prefixes', () => {
  const all = [metric({ name: 'train/loss' }), metric({ name: 'train/loss', rank: 1 }), metric({ name: 'lr' })];
  const charts = chartsOf('j', all);
  expect(charts.map(({ name, sources }) => [name, sources.map((one) => one.name)])).toEqual([
    ['train/loss', ['rank 0', 'rank 1']],
    ['lr', ['lr']],
  ]);
  expect(byPrefix(charts).map(([prefix, { length }]) => [prefix, length])).toEqual([['', 1], ['train', 1]]);
  expect(matches('train/Loss', 'loss tr')).toBe(true);
});

test('gives epochs beside steps an axis of their own, and all times one', () => {
  const of = (name: string, from: number, to: number) =>
    metric({ name }, [1, 2], { step: [from, to], time: [from, to] });
  const charts = chartsOf('j', [of('epochs', 1, 10), of('late', 150_000, 200_100), of('loss', 1, 200_000)]);
  const { shared, extent, extents } = axesOf(charts, 'step');
  expect([...shared]).toEqual(['loss', 'late']);
  expect(extent).toEqual([1, 200_100]);
  expect(extents.get('epochs')).toEqual([1, 10]);
  expect(axesOf(charts, 'time').shared.size).toBe(3);
  expect(axesOf(chartsOf('j', [long]), 'step').extent).toEqual([0, 11]);
});
