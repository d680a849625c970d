// A sweep: how its best metric came about, what parameters have to do with it, and all of its trials.
import { Alert, Anchor, Button, Chip, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import type { Job } from '../api/client';
import { hasEnded, LIVE, queries } from '../api/queries';
import { number } from '../parts/format';
import { Empty, Failed, Loading } from '../parts/Notices';
import { specQuery } from './steps/spec';
import { MOST_PAGES, type Page, readPages } from './trials/pages';
import { ParallelPlot } from './trials/ParallelPlot';
import { ProgressPlot } from './trials/ProgressPlot';
import { axisOf } from './trials/scales';
import {
  bestOf, counts, filterOf, inOrder, METRIC, numberOf, type Order, type Ranges, readRanges, type Trial, writeRanges,
} from './trials/trial';
import { TrialTable, written } from './trials/TrialTable';
import './trials/trials.css';

const MANY = 2_000; // trials from which on they are asked for less often
const SLOW = 10_000;
const COMPARED = 5; // the best ones that a button compares

function useTrials(job: Job) {
  const ended = hasEnded(job.state);
  return useQuery({
    queryKey: ['trials', job.id, ended],
    queryFn: () => {
      const known = [false, true].map((end) => queries.getQueryData<Page[]>(['trials', job.id, end]));
      return readPages(job.id, known[1] ?? known[0] ?? []);
    },
    placeholderData: (before: Page[] | undefined) => before,
    staleTime: ended ? Infinity : 0,
    refetchInterval: (query) => (ended ? false : (query.state.data?.length ?? 0) * 1_000 > MANY ? SLOW : LIVE),
  });
}

/** What the sweep looks for, if its submission is not there: as its best trials tell. */
function isMaximized(job: Job): boolean {
  const best = job.trials?.best ?? [];
  return (best[0]?.metric ?? 0) > (best.at(-1)?.metric ?? 0);
}

export default function Trials({ job }: { job: Job }) {
  const { data: pages, error } = useTrials(job);
  const { data: spec, isPending } = useQuery(specQuery(job));
  const [query, setQuery] = useSearchParams();
  const [looked, look] = useState<Trial | null>(null);
  const trials = useMemo(() => (pages ?? []).flatMap((page) => page.trials), [pages]);
  const sweep = spec?.sweep;
  const metric = sweep?.metric ?? 'metric';
  const maximize = sweep?.maximize ?? isMaximized(job);
  const axes = useMemo(() => {
    const told = () => [...new Set(trials.flatMap((one) => Object.keys(one.values)))];
    const names = sweep?.parameters.map((one) => one.name) ?? told();
    const parameters = names.map((name) => {
      const drawn = sweep?.parameters.find((one) => one.name === name);
      return axisOf(name, trials.map((trial) => trial.values[name] ?? null), drawn);
    });
    return [...parameters, axisOf(METRIC, trials.map((trial) => (trial.metric == null ? null : String(trial.metric))))];
  }, [sweep, trials]);
  const keep = query.getAll('keep').join('\n');
  const ranges = useMemo(() => readRanges(keep === '' ? [] : keep.split('\n')), [keep]);
  const state = query.get('state') ?? '';
  const inState = useMemo(() => trials.filter((trial) => !state || trial.state === state), [trials, state]);
  const shown = useMemo(() => inState.filter(filterOf(axes, ranges)), [inState, axes, ranges]);
  const best = useMemo(() => bestOf(trials, maximize), [trials, maximize]);
  const picked = useMemo(() => new Set((query.get('pick') ?? '').split(',').filter(Boolean).map(Number)), [query]);
  const say = useCallback(
    (name: string, values: string[]) =>
      setQuery((before) => {
        before.delete(name);
        values.filter(Boolean).forEach((value) => before.append(name, value));
        return before;
      }, { replace: true }),
    [setQuery],
  );
  const setRanges = useCallback((next: Ranges) => say('keep', writeRanges(next)), [say]);
  const pick = useCallback(
    (trial: Trial, is: boolean) =>
      setQuery((before) => {
        const chosen = new Set((before.get('pick') ?? '').split(',').filter(Boolean).map(Number));
        if (is) chosen.add(numberOf(trial));
        else chosen.delete(numberOf(trial));
        before.set('pick', [...chosen].join(','));
        if (chosen.size === 0) before.delete('pick');
        return before;
      }, { replace: true }),
    [setQuery],
  );
  if (error && !pages) return <Failed error={error} />;
  if (!pages || isPending) return <Loading />;
  if (trials.length === 0) {
    return (
      <Empty title={hasEnded(job.state) ? 'This sweep has no trials' : 'There are no trials yet'}>
        <Text>{hasEnded(job.state) ? job.reason : 'They are here as soon as the sweep has started the first.'}</Text>
      </Empty>
    );
  }
  const order: Order = {
    by: query.get('sort') ?? '.metric',
    down: query.has('sort') ? query.get('down') === '1' : maximize,
  };
  const setOrder = ({ by, down }: Order) =>
    setQuery((before) => {
      before.set('sort', by);
      before.set('down', down ? '1' : '0');
      return before;
    }, { replace: true });
  const parameters = axes.slice(0, -1).map((axis) => axis.name);
  const at = looked && (trials.find((trial) => trial.step === looked.step) ?? null);
  const plots = { metric, maximize, best, looked: at, look };
  return (
    <Stack>
      {pages.length === MOST_PAGES && pages.at(-1)?.next && (
        <Alert color="yellow">The first {trials.length} trials are shown; tutti job show {job.id} --all has all.</Alert>
      )}
      <Group justify="space-between">
        <States trials={trials} planned={sweep?.max_trials} state={state} choose={(one) => say('state', [one])} />
        <Compare trials={trials} picked={picked} maximize={maximize} clear={() => say('pick', [])} />
      </Group>
      {best && <TrialLine name="Best" trial={best} metric={metric} parameters={parameters} />}
      <section aria-labelledby="progress">
        <Title order={2} size="h5" id="progress">
          Best {metric} so far ({maximize ? 'higher' : 'lower'} is better)
        </Title>
        <ProgressPlot trials={trials} {...plots} />
      </section>
      <section aria-labelledby="parallel">
        <Group gap="sm" mb={4}>
          <Title order={2} size="h5" id="parallel">
            Parameters and {metric}
          </Title>
          {ranges.size > 0 ? (
            <Button size="compact-xs" variant="default" onClick={() => setRanges(new Map())}>
              Take all ranges away
            </Button>
          ) : (
            <Text size="xs" c="dimmed">
              Draw along an axis to keep a range of it, or move its ends by the arrow keys.
            </Text>
          )}
        </Group>
        <ParallelPlot trials={inState} axes={axes} ranges={ranges} setRanges={setRanges} {...plots} />
        {at && <TrialLine name="Under the pointer" trial={at} metric={metric} parameters={parameters} />}
      </section>
      <section aria-labelledby="trials">
        <Title order={2} size="h5" id="trials" mb={4}>
          {shown.length === trials.length ? `${trials.length} trials` : `${shown.length} of ${trials.length} trials`}
        </Title>
        {shown.length > 0 ? (
          <TrialTable trials={shown} parameters={parameters} order={order} setOrder={setOrder} picked={picked}
            pick={pick} {...plots} />
        ) : (
          <Empty title="No trial is like that">
            <Button variant="default" onClick={() => (setRanges(new Map()), say('state', []))}>
              Show all {trials.length}
            </Button>
          </Empty>
        )}
      </section>
    </Stack>
  );
}

interface StatesProps {
  trials: Trial[];
  planned: number | undefined;
  state: string;
  choose(state: string): void;
}

function States({ trials, planned, state, choose }: StatesProps) {
  const count = new Map<string, number>(state ? [[state, 0]] : []);
  for (const trial of trials) count.set(trial.state, (count.get(trial.state) ?? 0) + 1);
  return (
    <Chip.Group value={state} onChange={choose}>
      <Group gap={6} role="group" aria-label="State">
        <Chip value="" size="xs" variant="light">
          all {trials.length}
          {planned != null && planned > trials.length && ` of ${planned}`}
        </Chip>
        {[...count].map(([name, number]) => (
          <Chip key={name} value={name} size="xs" variant="light">
            {name} {number}
          </Chip>
        ))}
      </Group>
    </Chip.Group>
  );
}

interface CompareProps {
  trials: Trial[];
  picked: ReadonlySet<number>;
  maximize: boolean;
  clear(): void;
}

function Compare({ trials, picked, maximize, clear }: CompareProps) {
  const chosen = trials.filter((trial) => picked.has(numberOf(trial)));
  const best = inOrder(trials.filter(counts), { by: '.metric', down: maximize }).slice(0, COMPARED);
  const some = chosen.length > 0 ? chosen : best;
  const jobs = some.flatMap((trial) => trial.id ?? []).map(encodeURIComponent).join(',');
  if (some.length < 2) return <Text size="sm">{chosen.length === 1 && 'Choose another trial to compare both.'}</Text>;
  return (
    <Group gap="xs">
      {chosen.length > 0 && (
        <Button size="compact-sm" variant="subtle" onClick={clear}>
          Choose none
        </Button>
      )}
      <Button size="compact-sm" component={Link} href={`/compare?jobs=${jobs}`}>
        Compare {chosen.length > 0 ? `${some.length} chosen` : `the best ${some.length}`}
      </Button>
    </Group>
  );
}

interface TrialLineProps {
  name: string;
  trial: Trial;
  metric: string;
  parameters: string[];
}

function TrialLine({ name, trial, metric, parameters }: TrialLineProps) {
  const values = parameters.map((one) => `${one} ${written(trial.values[one])}`);
  return (
    <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
      {name}:{' '}
      {trial.id ? (
        <Anchor component={Link} href={`/jobs/${encodeURIComponent(trial.id)}`} size="sm" fw={600} underline="always">
          {trial.step}
        </Anchor>
      ) : (
        trial.step
      )}
      {', '}
      {trial.metric == null ? trial.state : `${metric} ${number(trial.metric)}`}, with {values.join(', ')}
    </Text>
  );
}
