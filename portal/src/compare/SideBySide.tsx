// A table with a row for each thing and a column for each job.
import { Group, Table, Text, useComputedColorScheme } from '@mantine/core';
import type { ReactNode } from 'react';
import { Swatch } from '../parts/ChartLegend';
import { type Compared, shortName } from './useCompared';

interface SideBySideProps {
  title: string;
  what: string;
  compared: readonly Compared[];
  rows: readonly { name: string; label?: ReactNode; cells: readonly ReactNode[] }[];
}

export function SideBySide({ title, what, compared, rows }: SideBySideProps) {
  const scheme = useComputedColorScheme('light');
  return (
    <Table.ScrollContainer
      minWidth={190 + 150 * compared.length}
      maxHeight={600} // of many metrics the table is scrolled
      scrollAreaProps={{ viewportProps: { tabIndex: 0, 'aria-label': title } }}
    >
      <Table withTableBorder withColumnBorders stickyHeader fz="sm" verticalSpacing={4} tabularNums>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col" w={190}>
              {what}
            </Table.Th>
            {compared.map(({ id, color }) => (
              <Table.Th key={id} scope="col" title={id}>
                <Group gap={6} wrap="nowrap">
                  <Swatch color={color} scheme={scheme} />
                  <Text span inherit className="one-line" maw={200}>
                    {shortName(compared, id)}
                  </Text>
                </Group>
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ name, label, cells }) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" fw={400} miw={150} style={{ overflowWrap: 'anywhere', verticalAlign: 'top' }}>
                {label ?? name}
              </Table.Th>
              {cells.map((cell, i) => (
                <Table.Td key={compared[i]!.id} style={{ overflowWrap: 'anywhere', verticalAlign: 'top' }}>
                  {cell}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
