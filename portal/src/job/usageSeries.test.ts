import { expect, test } from 'vitest';
import type { JobUsage } from '../api/client';
import { resolved } from '../parts/chartSeries';
import { usageCharts } from './usageSeries';

type Series = JobUsage['nodes'][number]['recent'];

function table(from: number, step: number, cpu: (number | null)[], more: Record<string, unknown> = {}): Series {
  const time = cpu.map((_, i) => new Date((from + i * step) * 1000).toISOString());
  const nulls = cpu.map(() => null);
  const empty = { memory: nulls, memory_left: nulls, disk_read: nulls, disk_write: nulls, machine_cpu: nulls };
  const rank = { rank: 3, cpu, memory: nulls, disk_read: nulls, disk_write: nulls, cpu_wait: cpu };
  return { time, cpu, ...empty, net_receive: nulls, net_send: nulls, samples: nulls, ranks: [rank], ...more };
}

function usage(recent: Series, whole: Series): JobUsage {
  return { job: 'a', live: true, problems: [], ranks: [], nodes: [{ node: 0, name: '', age: null, recent, whole }] };
}

test('has a chart for each column with values, also for those of a later service', () => {
  const gpu = { gpu_use: [0.5, 0.6], gpu_memory: [{ of: 'another kind' }] };
  const charts = usageCharts(usage(table(0, 1, [1, 2], gpu), table(0, 30, [1.5])), false, ['n1'], []);
  expect(charts.map(({ column, series }) => [column, series.map(({ name }) => name)])).toEqual([
    ['cpu', ['n1']],
    ['cpu_wait', ['rank 3']],
    ['gpu_use', ['n1']],
  ]);
});

test('shows the whole life, and the samples where one looks at them alone', () => {
  const [cpu] = usageCharts(usage(table(900, 1, [1, 2, 3]), table(0, 30, Array(31).fill(1))), true, [], []);
  expect(cpu!.byRank).toBe(true);
  expect(resolved(cpu!.series[0]!, [0, 902]).points.x.length).toBe(31);
  expect(resolved(cpu!.series[0]!, [900, 902]).points.x.length).toBe(3);
});
