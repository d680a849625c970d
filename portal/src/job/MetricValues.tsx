// The last, least and greatest value of each metric, and all of them as a file.
import { Button, Group, Table, Text, Title } from '@mantine/core';
import { number } from '../parts/format';
import { lastText, type Metric } from '../parts/metricSeries';
import { save } from '../parts/save';
import { metricsCsv } from './metricsCsv';

const HEIGHT = 420; // of many metrics the table is scrolled

export function MetricValues({ job, metrics }: { job: string; metrics: readonly Metric[] }) {
  const inFull = metrics.every(({ span }) => span === 1);
  return (
    <section aria-label="Values">
      <Group mb="xs">
        <Title order={2} size="h5">
          Values
        </Title>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => save(`${job}-metrics.csv`, [metricsCsv(metrics)], 'text/csv')}
        >
          Download CSV
        </Button>
        <Text size="xs" c="dimmed">
          {inFull
            ? 'The file has each point.'
            : 'Of long curves the file has spans: the last value of each, the least (low) and the greatest (high).'}
        </Text>
      </Group>
      <ValueTable metrics={metrics} />
    </section>
  );
}

function ValueTable({ metrics }: { metrics: readonly Metric[] }) {
  const severalRanks = new Set(metrics.map(({ rank }) => rank)).size > 1;
  const lost = metrics.some(({ not_finite }) => not_finite > 0);
  const titles = ['Last', 'Least', 'Greatest', 'Step', 'Points', ...(lost ? ['Not finite'] : [])];
  const cells = (metric: Metric) => {
    const { min, max, step, count, not_finite } = metric;
    return [lastText(metric), ...[min, max, step, count, ...(lost ? [not_finite] : [])].map(number)];
  };
  return (
    <Table.ScrollContainer
      minWidth={480}
      maxHeight={HEIGHT}
      scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': 'Values' } }}
    >
      <Table striped withTableBorder stickyHeader fz="sm" verticalSpacing={4} tabularNums>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Metric</Table.Th>
            {severalRanks && <Table.Th scope="col">Rank</Table.Th>}
            {titles.map((title) => (
              <Table.Th key={title} scope="col" ta="right">
                {title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {metrics.map((metric) => (
            <Table.Tr key={`${metric.name} ${metric.rank} ${metric.run}`}>
              <Table.Th scope="row" fw={400} style={{ overflowWrap: 'anywhere' }}>
                {metric.name}
              </Table.Th>
              {severalRanks && <Table.Td>{metric.rank}</Table.Td>}
              {cells(metric).map((text, i) => (
                <Table.Td key={titles[i]} ta="right">
                  {text}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
