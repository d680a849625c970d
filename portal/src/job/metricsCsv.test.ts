import { expect, test } from 'vitest';
import { metricsCsv } from './metricsCsv';

test('has a row for each span, quotes what needs it, and lets no name become a formula', () => {
  const spans = { low: [1, null], high: [50, null], not_finite: [0, 4] };
  const course = { step: [3, 7], time: [null, 1], value: [2, null], ...spans };
  const newest = { step: [], time: [], value: [], not_finite: [] };
  const all = { count: 8, last: null, step: 7, min: 1, max: 50, course, newest, not_finite: 4, first_not_finite: 3, span: 4, first: 0 };
  const metric = { ...all, name: '=a "b", c', rank: 0, run: null, last_not_finite: 'nan' as const };
  expect(metricsCsv([metric]).split('\r\n')).toEqual([
    'metric,rank,run,step,time,value,low,high,not_finite',
    '"\'=a ""b"", c",0,,3,,2,1,50,0',
    '"\'=a ""b"", c",0,,7,1970-01-01T00:00:01.000Z,,,,4',
    '',
  ]);
});
