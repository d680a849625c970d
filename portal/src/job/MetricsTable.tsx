// The last, least and greatest value of each metric.
import { Table } from '@mantine/core';
import type { Metric } from '../parts/metricSeries';
import { number } from '../parts/format';

export function MetricsTable({ metrics }: { metrics: readonly Metric[] }) {
  const severalRanks = new Set(metrics.map(({ rank }) => rank)).size > 1;
  const titles = ['Last', 'Least', 'Greatest', 'Step', 'Points'];
  return (
    <Table.ScrollContainer minWidth={480} scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': 'Values' } }}>
      <Table striped withTableBorder fz="sm" verticalSpacing={4} tabularNums>
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
          {metrics.map(({ name, rank, run, last, min, max, step, count }) => (
            <Table.Tr key={`${name} ${rank} ${run}`}>
              <Table.Th scope="row" fw={400} style={{ overflowWrap: 'anywhere' }}>
                {name}
              </Table.Th>
              {severalRanks && <Table.Td>{rank}</Table.Td>}
              {[last, min, max, step, count].map((value, i) => (
                <Table.Td key={titles[i]} ta="right">
                  {number(value)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
