// What a job reports, a chart for each metric, and below what it uses.
import { Alert, Button, Group, MultiSelect, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useQueries, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Job } from '../api/client';
import { hasEnded } from '../api/queries';
import { Chart } from '../parts/Chart';
import { LogSwitch, NameSearch, NoMetricNamed, Smoothing, useSmoothing, ZoomHint } from '../parts/ChartControls';
import { ChartCard, ChartGrid } from '../parts/ChartGrid';
import { type ChartGroup, useChartGroup } from '../parts/chartGroup';
import { csvOf } from '../parts/csv';
import { HowToReport } from '../parts/HowToReport';
import { byPrefix, chartsOf, hasTimes, matches, type Metric, type MetricChart } from '../parts/metricSeries';
import { Failed, Loading } from '../parts/Notices';
import { extentOf } from '../parts/points';
import { save } from '../parts/save';
import type { XUnit } from '../parts/units';
import { listed, rangeIn, rangeText, useView } from '../parts/useView';
import { chartUsageQuery, rankMetricsQuery } from './metricsQueries';
import { isThinned, metricRows } from './metricsRows';
import { MetricsTable } from './MetricsTable';
import { SystemCharts } from './SystemCharts';
import { usageCharts } from './usageSeries';

const MOST_RANKS = 8;

export default function Metrics({ job }: { job: Job }) {
  const [view, setView] = useView();
  const live = !hasEnded(job.state);
  const chosen = view.get('ranks');
  const ranks = useMemo(() => ranksIn(chosen, job.world_size), [chosen, job.world_size]);
  const { metrics, error } = useMetrics(job.id, ranks, live);
  const usage = useQuery(chartUsageQuery(job, live));
  const xUnit: XUnit = view.get('x') === 'time' ? 'time' : 'step';
  const [smoothing, setSmoothing, keepSmoothing] = useSmoothing();
  const search = view.get('q') ?? '';

  const charts = useMemo(() => chartsOf(metrics ?? [], xUnit, smoothing), [metrics, xUnit, smoothing]);
  const byRank = view.get('by') === 'rank';
  const system = useMemo(
    () => (usage.data ? usageCharts(usage.data, byRank, job.nodes, ranks) : []),
    [usage.data, byRank, job.nodes, ranks],
  );
  const found = charts.filter(({ name }) => matches(name, search));
  const ofMetrics = extentOf(found.flatMap(({ series }) => series.map(({ points }) => points)));
  const ofUsage = extentOf(system.flatMap(({ series }) => series.map(({ points }) => points)));
  const steps = useChartGroup(xUnit === 'step' ? ofMetrics : null, rangeIn(view.get('steps')), (range) =>
    setView({ steps: rangeText(range) }),
  );
  const allTimes = xUnit === 'time' && ofMetrics && ofUsage ? both(ofMetrics, ofUsage) : (ofUsage ?? ofMetrics);
  const times = useChartGroup(allTimes, rangeIn(view.get('times')), (range) => setView({ times: rangeText(range) }));
  const group = xUnit === 'step' ? steps : times;

  if (error && !metrics) return <Failed error={error} />;
  if (!metrics) return <Loading />;
  return (
    <Stack>
      <Group gap="md">
        {charts.length > 0 && (
          <>
            <NameSearch />
            <AxisChoice xUnit={xUnit} />
            <Smoothing value={smoothing} onChange={setSmoothing} onKeep={keepSmoothing} />
            <LogSwitch />
          </>
        )}
        {job.world_size > 1 && <RanksSelect job={job} ranks={ranks} />}
        {charts.length > 0 && <ZoomHint group={group} />}
      </Group>
      {metrics.length === 0 ? (
        <NoMetrics live={live} chosen={ranks.length > 0} />
      ) : (
        <MetricCharts charts={found} search={search} xUnit={xUnit} group={group} metrics={metrics} />
      )}
      {usage.error && !usage.data && <Failed error={usage.error} />}
      {usage.data && (
        <SystemCharts job={job} usage={usage.data} charts={system} group={times} shared={xUnit === 'time'} />
      )}
      {metrics.length > 0 && <Values job={job} metrics={metrics.filter(({ name }) => matches(name, search))} />}
    </Stack>
  );
}

function useMetrics(job: string, ranks: readonly number[], live: boolean) {
  return useQueries({
    queries: (ranks.length > 0 ? ranks : [null]).map((rank) => rankMetricsQuery(job, rank, live)),
    combine: combined,
  });
}

type Answers = { data?: { metrics: Metric[] }; error: Error | null }[];

function combined(answers: Answers): { metrics: Metric[] | null; error: Error | null } {
  const told = answers.flatMap(({ data }) => (data ? [data.metrics] : []));
  return { metrics: told.length > 0 ? told.flat() : null, error: answers.find(({ error }) => error)?.error ?? null };
}

function ranksIn(text: string | null, worldSize: number): number[] {
  const ranks = listed(text).map(Number);
  return ranks.filter((rank) => Number.isInteger(rank) && rank >= 0 && rank < worldSize).slice(0, MOST_RANKS);
}

function both(a: readonly [number, number], b: readonly [number, number]): [number, number] {
  return [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
}

function AxisChoice({ xUnit }: { xUnit: XUnit }) {
  const [, setView] = useView();
  return (
    <SegmentedControl
      size="xs"
      aria-label="Horizontal axis"
      value={xUnit}
      onChange={(x) => setView({ x: x === 'time' ? x : null })}
      data={[
        { value: 'step', label: 'By step' },
        { value: 'time', label: 'By time' },
      ]}
    />
  );
}

function RanksSelect({ job, ranks }: { job: Job; ranks: readonly number[] }) {
  const [, setView] = useView();
  const all = useMemo(
    () => Array.from({ length: job.world_size }, (_, rank) => ({ value: String(rank), label: `rank ${rank}` })),
    [job.world_size],
  );
  return (
    <MultiSelect
      aria-label="Ranks"
      placeholder={ranks.length > 0 ? undefined : 'The lowest rank that reports'}
      miw={230}
      size="xs"
      data={all}
      limit={64}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'No chosen ranks' }}
      maxValues={MOST_RANKS}
      value={ranks.map(String)}
      onChange={(chosen) => setView({ ranks: chosen.join(',') })}
    />
  );
}

function NoMetrics({ live, chosen }: { live: boolean; chosen: boolean }) {
  const [, setView] = useView();
  if (chosen) {
    return (
      <Group>
        <Text>The chosen ranks report no metrics.</Text>
        <Button size="compact-sm" variant="default" onClick={() => setView({ ranks: null })}>
          The lowest rank that reports
        </Button>
      </Group>
    );
  }
  return (
    <Stack gap="xs">
      <Title order={2} size="h5">
        {live ? 'No metrics yet' : 'The job reported no metrics'}
      </Title>
      <HowToReport />
    </Stack>
  );
}

interface MetricChartsProps {
  charts: readonly MetricChart[];
  search: string;
  xUnit: XUnit;
  group: ChartGroup;
  metrics: readonly Metric[];
}

function MetricCharts({ charts, search, xUnit, group, metrics }: MetricChartsProps) {
  const [view, setView] = useView();
  if (xUnit === 'time' && !metrics.some(hasTimes)) {
    return (
      <Alert color="blue" title="These metrics tell no times">
        <Group>
          <Text size="sm">{'A script that writes "time": time.time() into its lines has them by time too.'}</Text>
          <Button size="compact-sm" variant="default" onClick={() => setView({ x: null })}>
            Show them by step
          </Button>
        </Group>
      </Alert>
    );
  }
  if (charts.length === 0) return <NoMetricNamed search={search} />;
  const groups = byPrefix(charts);
  return groups.map(([prefix, members]) => (
    <ChartGrid key={prefix} title={prefix === '' ? 'Metrics' : `${prefix}/`} count={members.length}>
      {members.map(({ name, series }) => (
        <ChartCard key={name}>
          <Chart title={name} series={series} xUnit={xUnit} log={view.has('log')} group={group} />
        </ChartCard>
      ))}
    </ChartGrid>
  ));
}

function Values({ job, metrics }: { job: Job; metrics: readonly Metric[] }) {
  return (
    <section aria-label="Values">
      <Group mb="xs">
        <Title order={2} size="h5">
          Values
        </Title>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => save(`${job.id}-metrics.csv`, [csvOf(metricRows(metrics))], 'text/csv')}
        >
          Download CSV
        </Button>
        {isThinned(metrics) && (
          <Text size="xs" c="dimmed">
            Of long curves the file has evenly chosen points, and the newest ones.
          </Text>
        )}
      </Group>
      <MetricsTable metrics={metrics} />
    </section>
  );
}
