// Charts of metrics in groups that fold. What is zoomed is fetched, down to each point.
import { Button, Stack, Text, Title, UnstyledButton } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { answer, service } from '../api/client';
import { COURSE, LIVE } from '../api/queries';
import { Chart, ChartGrid } from './Chart';
import { NoMetricNamed } from './ChartControls';
import { type ChartGroup, useChartGroup, useSettledRange } from './chartGroup';
import {
  type Axes, beganOf, byPrefix, type Detail, grouped, type Metric, type MetricChart, seriesOf, type Source,
} from './metricSeries';
import type { Range } from './points';
import type { XUnit } from './units';
import { listed, useView } from './useView';

interface Shown {
  axes: Axes;
  /** The group of the charts that share an axis. */
  group: ChartGroup;
  xUnit: XUnit;
  smoothing: number;
  /** Whether points may still come. */
  live: boolean;
  hidden?: ReadonlySet<string>;
  onHidden?(hidden: ReadonlySet<string>): void;
}

const ALONE = 'Covers less than an eighth of the steps of the longest: a zoom of the others does not move it.';
const FEW = 24; // charts that are shown until somebody asks for more

/** The charts, in groups by what stands before the "/" of their names: the first ones are open. */
export function MetricCharts({ charts, ...shown }: Shown & { charts: readonly MetricChart[] }) {
  const [view, setView] = useView();
  if (charts.length === 0) return <NoMetricNamed search={view.get('q') ?? ''} />;
  const [opened, shut] = [listed(view.get('open')), listed(view.get('shut'))];
  let count = 0;
  return byPrefix(charts).map(([prefix, members]) => {
    const fits = count === 0 || count + members.length <= FEW;
    count += fits ? members.length : 0;
    const name = `${encodeURIComponent(prefix)}/`; // never empty
    const open = fits ? !shut.includes(name) : opened.includes(name);
    const toggle = () =>
      setView({ open: listWith(opened, name, !open && !fits), shut: listWith(shut, name, open && fits) });
    return <Section key={prefix} {...{ prefix, members, open, toggle, shown }} />;
  });
}

/** The list "a,b" with this name or without it. */
function listWith(all: readonly string[], name: string, there: boolean): string {
  return [...all.filter((other) => other !== name), ...(there ? [name] : [])].join(',');
}

interface SectionProps {
  prefix: string;
  members: readonly MetricChart[];
  open: boolean;
  toggle(): void;
  shown: Shown;
}

function Section({ prefix, members, open, toggle, shown }: SectionProps) {
  const [most, setMost] = useState(FEW);
  const title = prefix === '' ? 'Metrics' : `${prefix}/`;
  const rest = members.length - most;
  return (
    <Stack component="section" gap="xs" aria-label={title}>
      <Title order={2} size="h5">
        <UnstyledButton className="chart-fold" aria-expanded={open} onClick={toggle}>
          <span aria-hidden>{open ? '▾ ' : '▸ '}</span>
          {`${title} (${members.length})`}
        </UnstyledButton>
      </Title>
      {open && (
        <ChartGrid>
          {members.slice(0, most).map((chart) => (
            <FetchedChart key={chart.name} chart={chart} {...shown} />
          ))}
        </ChartGrid>
      )}
      {open && rest > 0 && (
        <Button size="compact-sm" variant="default" style={{ alignSelf: 'start' }} onClick={() => setMost(most + FEW)}>
          {`Show ${Math.min(rest, FEW)} more of ${rest}`}
        </Button>
      )}
    </Stack>
  );
}

function FetchedChart({ chart, ...shown }: Shown & { chart: MetricChart }) {
  const { name, sources } = chart;
  const { axes, group: common, xUnit, smoothing, live, hidden, onHidden } = shown;
  const [view] = useView();
  const [near, setNear] = useState(false);
  const alone = !axes.shared.has(name);
  const own = useChartGroup(axes.extents.get(name) ?? null);
  const group = alone ? own : common;
  const { details, error } = useDetails(sources, useSettledRange(group), xUnit, near, live);
  const series = useMemo(
    () => sources.map((source) => seriesOf(source, xUnit, near ? smoothing : 0, details.get(source.key))),
    [sources, xUnit, smoothing, near, details],
  );
  const [aside, why] = error ? ['only coarse', error.message] : alone ? ['has an axis of its own', ALONE] : [null];
  return (
    <Chart
      title={name}
      aside={aside && <Text span fz="xs" c="dimmed" title={why}>{aside}</Text>}
      log={view.has('log')}
      onNear={setNear}
      {...{ series, xUnit, group, hidden, onHidden }}
    />
  );
}

const NO_DETAILS: ReadonlyMap<string, Detail> = new Map();

/** The visible part of curves of which the page has not each point, by the keys of these. */
function useDetails(all: readonly Source[], range: Range | null, xUnit: XUnit, near: boolean, live: boolean) {
  const coarse = all.filter(({ metric }) => metric.span > 1);
  const { data, error } = useQuery({
    queryKey: ['metrics', 'part', coarse.map(({ job, key, metric }) => [job, key, metric.name]), range, xUnit, live],
    queryFn: async ({ signal }) => ({ xUnit, details: await fetchDetails(coarse, range!, xUnit, signal) }),
    enabled: near && range !== null && coarse.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => live && state.data !== undefined && reachesEnd(state.data.details, xUnit) && LIVE,
  });
  return { details: data?.xUnit === xUnit ? data.details : NO_DETAILS, error };
}

/** Asks once for each rank of each job: an answer has the curves of all runs within a rank. */
async function fetchDetails(sources: readonly Source[], range: Range, xUnit: XUnit, signal: AbortSignal) {
  const by = xUnit === 'step' ? 'step' : 'time';
  const calls = [...grouped(sources, ({ job, metric }) => `${job} ${metric.rank}`).values()].map(async (ofRank) => {
    const { job, metric: { name, rank } } = ofRank[0]!;
    const [from, to] = range.map((end) => end + beganOf(ofRank[0]!, xUnit)) as [number, number];
    const params = { path: { job }, query: { rank, metric: name, by, from, to, points: COURSE } } as const;
    const { metrics } = await answer(service.GET('/v1/jobs/{job}/metrics', { params, signal }));
    return ofRank.flatMap(({ key, metric }) => {
      const part = metrics.find(({ run }) => run === metric.run);
      return part ? [[key, { metric: part, covers: range }] as const] : [];
    });
  });
  return new Map<string, Detail>((await Promise.all(calls)).flat());
}

/** Whether a curve has no point behind the part yet, so that more may come into it. Elapsed time is not compared. */
function reachesEnd(details: ReadonlyMap<string, Detail>, xUnit: XUnit): boolean {
  const endOf = ({ course }: Metric) => course[xUnit === 'step' ? 'step' : 'time'].at(-1) ?? -Infinity;
  return xUnit === 'elapsed' || [...details.values()].some(({ metric, covers }) => endOf(metric) <= covers[1]);
}
