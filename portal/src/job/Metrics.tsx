// What a job reports, a chart for each metric, and below what it uses.
import { Alert, Button, Group, MultiSelect, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { keepPreviousData, queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { answer, type Job, service } from '../api/client';
import { hasEnded, LIVE, rankMetricsQuery } from '../api/queries';
import { LogSwitch, NameSearch, Smoothing, useSmoothing, ZoomHint } from '../parts/ChartControls';
import { useChartGroup } from '../parts/chartGroup';
import { HowToReport } from '../parts/HowToReport';
import { MetricCharts } from '../parts/MetricCharts';
import { axesOf, chartsOf, hasTimes, matches, type Metric } from '../parts/metricSeries';
import { Failed, Loading } from '../parts/Notices';
import { extentOf, hull } from '../parts/points';
import type { XUnit } from '../parts/units';
import { listed, rangeIn, rangeText, useView } from '../parts/useView';
import { MetricValues } from './MetricValues';
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

  const charts = useMemo(() => chartsOf(job.id, metrics ?? []), [job.id, metrics]);
  const byRank = view.get('by') === 'rank';
  const system = useMemo(
    () => (usage.data ? usageCharts(usage.data, byRank, job.nodes, ranks) : []),
    [usage.data, byRank, job.nodes, ranks],
  );
  const found = useMemo(() => charts.filter(({ name }) => matches(name, search)), [charts, search]);
  const axes = useMemo(() => axesOf(found, xUnit), [found, xUnit]);
  const ofMetrics = axes.extent;
  const ofUsage = extentOf(system.flatMap(({ series }) => series.map(({ points }) => points)));
  const steps = useChartGroup(xUnit === 'step' ? ofMetrics : null, rangeIn(view.get('steps')), (range) =>
    setView({ steps: rangeText(range) }),
  );
  const allTimes = xUnit === 'time' ? hull([ofMetrics, ofUsage]) : ofUsage;
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
        {charts.length > 0 && <ZoomHint group={group} banded={metrics.some(({ span }) => span > 1)} />}
      </Group>
      {metrics.length === 0 ? (
        <NoMetrics live={live} chosen={ranks.length > 0} />
      ) : xUnit === 'time' && !metrics.some(hasTimes) ? (
        <WithoutTimes />
      ) : (
        <MetricCharts charts={found} {...{ axes, group, xUnit, smoothing, live }} />
      )}
      {usage.error && !usage.data && <Failed error={usage.error} />}
      {usage.data && (
        <SystemCharts job={job} usage={usage.data} charts={system} group={times} shared={xUnit === 'time'} />
      )}
      {metrics.length > 0 && (
        <MetricValues job={job.id} metrics={metrics.filter(({ name }) => matches(name, search))} />
      )}
    </Stack>
  );
}

/** What the job uses; of a large gang in the resolution that the service chooses. */
const chartUsageQuery = (job: Job, live: boolean) =>
  queryOptions({
    queryKey: ['usage', job.id, 'charts', live],
    queryFn: () => {
      const points = job.world_size <= 16 ? 600 : job.world_size <= 64 ? 240 : undefined;
      const params = { path: { job: job.id }, query: points ? { points } : {} };
      return answer(service.GET('/v1/jobs/{job}/usage', { params }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: live && LIVE * (job.world_size <= 64 ? 1 : 3),
  });

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

/** Says why there are no curves by time. */
function WithoutTimes() {
  const [, setView] = useView();
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
