// What came of the jobs: the last value of each metric, with the best one marked, and what they took.
import { Badge, Group, NativeSelect, Text, Title } from '@mantine/core';
import { bytes, duration, secondsBetween } from '../parts/format';
import { lastText, matches } from '../parts/metricSeries';
import { StateBadge } from '../parts/StateBadge';
import { listed, useView } from '../parts/useView';
import { type Better, bestOf, betterBy } from './best';
import { SideBySide } from './SideBySide';
import type { Compared } from './useCompared';

export function Outcome({ compared, names }: { compared: readonly Compared[]; names: readonly string[] }) {
  const [view, setView] = useView();
  const search = view.get('q') ?? '';
  const chosen = chosenIn(view);
  const choose = (name: string, better: Better) => {
    const now = new Map(chosen);
    if (better === betterBy(name)) now.delete(name);
    else now.set(name, better);
    const names = (of: Better) => [...now].filter(([, its]) => its === of).map(([its]) => encodeURIComponent(its));
    setView({ low: names('low').join(','), high: names('high').join(','), none: names('none').join(',') });
  };
  const metricRows = names.filter((name) => matches(name, search)).map((name) => {
    const better = chosen.get(name) ?? betterBy(name);
    const its = compared.map(({ metrics }) => metrics?.find((metric) => metric.name === name));
    const best = bestOf(its.map((metric) => metric?.last ?? null), better);
    return {
      name,
      label: <MetricName name={name} better={better} onBetter={(now) => choose(name, now)} />,
      cells: its.map((metric, i) => <Value key={i} value={metric ? lastText(metric) : '–'} best={best.has(i)} />),
    };
  });
  return (
    <section aria-label="What came of them">
      <Title order={2} size="h5" mb="xs">
        What came of them
      </Title>
      <SideBySide
        title="What came of them"
        what="Last value"
        compared={compared}
        rows={[
          ...metricRows,
          { name: 'state', cells: compared.map(({ job }) => job && <StateBadge state={job.state} />) },
          { name: 'ran for', cells: compared.map(ranFor) },
          { name: 'nodes', cells: compared.map(({ job }) => job?.node_count ?? '–') },
          { name: 'processes', cells: compared.map(({ job }) => job?.world_size ?? '–') },
          { name: 'most memory of a rank', cells: compared.map(({ job }) => bytes(job?.peak_memory)) },
        ]}
      />
    </section>
  );
}

/** For which metrics someone said which value is the best. */
function chosenIn(view: URLSearchParams): Map<string, Better> {
  const of = (better: Better) => listed(view.get(better)).map((name) => [decodedName(name), better] as const);
  return new Map([...of('low'), ...of('high'), ...of('none')]);
}

function decodedName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // an address that someone has written by hand
  }
}

function ranFor({ job }: Compared): string {
  const seconds = job && secondsBetween(job.started, job.ended);
  return seconds === null ? '–' : duration(seconds);
}

function Value({ value, best }: { value: string; best: boolean }) {
  return (
    <Group gap={6} wrap="nowrap">
      <Text inherit span fw={best ? 700 : 400}>
        {value}
      </Text>
      {best && (
        <Badge size="xs" color="green" variant="light" tt="none" autoContrast>
          best
        </Badge>
      )}
    </Group>
  );
}

function MetricName({ name, better, onBetter }: { name: string; better: Better; onBetter(better: Better): void }) {
  return (
    <Group gap={6} justify="space-between">
      <span>{name}</span>
      <NativeSelect
        size="xs"
        w={92}
        variant="unstyled"
        aria-label={`Which value of ${name} is the best`}
        value={better}
        onChange={(event) => onBetter(event.currentTarget.value as Better)}
        data={[
          { value: 'low', label: '↓ lowest' },
          { value: 'high', label: '↑ highest' },
          { value: 'none', label: 'none best' },
        ]}
      />
    </Group>
  );
}
