// Jobs side by side: what they were given, their curves and what came of them. The address says all of it.
import { Alert, Button, Group, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useMemo } from 'react';
import { hasEnded } from '../api/queries';
import { LogSwitch, NameSearch, Smoothing, useSmoothing, ZoomHint } from '../parts/ChartControls';
import { useChartGroup } from '../parts/chartGroup';
import { HowToReport } from '../parts/HowToReport';
import { byInterest } from '../parts/metricOrder';
import { MetricCharts } from '../parts/MetricCharts';
import { axesOf, hasTimes, matches, type MetricChart } from '../parts/metricSeries';
import { MOST_COMPARED } from '../parts/mostCompared';
import { Empty } from '../parts/Notices';
import type { XUnit } from '../parts/units';
import { usePageTitle } from '../parts/usePageTitle';
import { listed, rangeIn, rangeText, useView } from '../parts/useView';
import { GivenTable } from './Given';
import { ChosenJobs, JobsPicker } from './JobsPicker';
import { Outcome } from './Outcome';
import { type Compared, shortName, useCompared } from './useCompared';

const AXES: { value: XUnit; label: string }[] = [
  { value: 'step', label: 'By step' },
  { value: 'elapsed', label: 'Since the start' },
  { value: 'time', label: 'By time' },
];

export default function ComparePage() {
  usePageTitle('Compare');
  const [view, setView] = useView();
  const [jobs, hide] = [view.get('jobs'), view.get('hide')];
  const [ids, others] = useMemo(() => {
    const named = listed(jobs);
    return [named.slice(0, MOST_COMPARED), named.slice(MOST_COMPARED)];
  }, [jobs]);
  const setIds = (next: string[]) =>
    setView({ jobs: [...next, ...others].join(','), hide: listed(hide).filter((id) => next.includes(id)).join(',') });
  const compared = useCompared(ids);
  const hidden = useMemo(() => new Set(listed(hide)), [hide]);
  const setHidden = (next: ReadonlySet<string>) => setView({ hide: [...next].join(',') });
  return (
    <Stack>
      <Title order={1} size="h3">
        Compare
      </Title>
      <JobsPicker ids={ids} onIds={setIds} />
      {others.length > 0 && <LeftOut ids={others} onDrop={() => setView({ jobs: ids.join(',') })} />}
      {ids.length === 0 ? (
        <Empty title="Choose jobs to compare">
          <Text>Search above for jobs by their names, or mark some in the list of jobs and compare them.</Text>
          <Text>Their curves, parameters and last values stand side by side then.</Text>
        </Empty>
      ) : (
        <>
          <ChosenJobs
            compared={compared}
            hidden={hidden}
            onToggle={(id) => setHidden(hidden.has(id) ? without(hidden, id) : new Set([...hidden, id]))}
            onRemove={(id) => setIds(ids.filter((other) => other !== id))}
          />
          <GivenTable compared={compared} />
          <Curves compared={compared} hidden={hidden} onHidden={setHidden} />
          <Outcome compared={compared} names={namesOf(compared)} />
        </>
      )}
    </Stack>
  );
}

/** Says which jobs of the address are not compared. */
function LeftOut({ ids, onDrop }: { ids: readonly string[]; onDrop(): void }) {
  return (
    <Alert
      color="yellow"
      role="status"
      title={`The first ${MOST_COMPARED} of ${MOST_COMPARED + ids.length} jobs are compared`}
    >
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        Not shown: {ids.join(', ')}. Remove one below, and the next takes its place.
      </Text>
      <Button size="compact-sm" variant="default" mt="xs" onClick={onDrop}>
        Leave them out
      </Button>
    </Alert>
  );
}

function without(all: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...all].filter((other) => other !== id));
}

/** The names of all metrics, those that most jobs have first. */
function namesOf(compared: readonly Compared[]): string[] {
  const count = new Map<string, number>();
  for (const { metrics } of compared) {
    for (const name of new Set(metrics?.map((metric) => metric.name))) count.set(name, (count.get(name) ?? 0) + 1);
  }
  return [...count.keys()].sort((a, b) => count.get(b)! - count.get(a)! || byInterest(a, b));
}

/** The charts in which any job has a curve. */
function chartsOf(compared: readonly Compared[], xUnit: XUnit): MetricChart[] {
  const charts = namesOf(compared).map((name) => ({
    name,
    sources: compared.flatMap(({ id, color, job, metrics }) => {
      const metric = metrics?.find((one) => one.name === name);
      if (!job || !metric || (xUnit !== 'step' && !hasTimes(metric))) return [];
      const began = job.started ? Date.parse(job.started) / 1000 : undefined;
      return [{ key: id, name: shortName(compared, id), color, job: id, metric, began }];
    }),
  }));
  return charts.filter(({ sources }) => sources.length > 0);
}

interface CurvesProps {
  compared: readonly Compared[];
  hidden: ReadonlySet<string>;
  onHidden(hidden: ReadonlySet<string>): void;
}

function Curves({ compared, hidden, onHidden }: CurvesProps) {
  const [view, setView] = useView();
  const xUnit = AXES.find(({ value }) => value === view.get('x'))?.value ?? 'step';
  const [smoothing, setSmoothing, keepSmoothing] = useSmoothing();
  const live = compared.some(({ job }) => job && !hasEnded(job.state));
  const search = view.get('q') ?? '';
  const charts = useMemo(() => chartsOf(compared, xUnit), [compared, xUnit]);
  const found = useMemo(() => charts.filter(({ name }) => matches(name, search)), [charts, search]);
  const axes = useMemo(() => axesOf(found, xUnit), [found, xUnit]);
  const group = useChartGroup(axes.extent, rangeIn(view.get('zoom')), (range) => setView({ zoom: rangeText(range) }));

  if (!compared.some(({ metrics }) => metrics && metrics.length > 0)) {
    if (compared.some(({ job, metrics, error }) => !error && (!job || !metrics))) return null;
    return (
      <section aria-label="Curves">
        <Text mb="xs">These jobs have reported no metrics.</Text>
        <HowToReport />
      </section>
    );
  }
  return (
    <Stack gap="sm" component="section" aria-label="Curves">
      <Group gap="md">
        <NameSearch />
        <SegmentedControl
          size="xs"
          aria-label="Horizontal axis"
          value={xUnit}
          onChange={(x) => {
            group.setRange(null); // a range of steps is none of times
            setView({ x: x === 'step' ? null : x, zoom: null });
          }}
          data={AXES}
        />
        <Smoothing value={smoothing} onChange={setSmoothing} onKeep={keepSmoothing} />
        <LogSwitch />
        <ZoomHint group={group} banded={compared.some(({ metrics }) => metrics?.some(({ span }) => span > 1))} />
      </Group>
      {xUnit !== 'step' && <WithoutTimes compared={compared} />}
      {charts.length > 0 && (
        <MetricCharts charts={found} {...{ axes, group, xUnit, smoothing, live, hidden, onHidden }} />
      )}
    </Stack>
  );
}

/** Which jobs have no curves by time. */
function WithoutTimes({ compared }: { compared: readonly Compared[] }) {
  const [, setView] = useView();
  const without = compared.filter(({ metrics }) => metrics && metrics.length > 0 && !metrics.some(hasTimes));
  if (without.length === 0) return null;
  const names = without.map(({ id }) => shortName(compared, id)).join(', ');
  return (
    <Alert color="blue" title="Some metrics tell no times">
      <Group>
        <Text size="sm">{`${names}: a script that writes "time": time.time() into its lines has curves by time.`}</Text>
        <Button size="compact-sm" variant="default" onClick={() => setView({ x: null, zoom: null })}>
          Show them by step
        </Button>
      </Group>
    </Alert>
  );
}
