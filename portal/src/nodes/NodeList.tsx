// The nodes of one compute: a table, or cards where the page is narrow.
import { Button, Card, Group, Stack, Table, Text } from '@mantine/core';
import { memo, useState } from 'react';
import type { Node } from '../api/client';
import { StateBadge } from '../parts/StateBadge';
import type { Act } from './NodeDialog';
import { Cores, Gpus, Memory, NodeJobs, Traffic, whyNot } from './NodeFacts';
import type { Use } from './use';
import { keyOf } from './useUse';

const FIRST = 100; // nodes that are shown until one asks for all

const COLUMNS = ['Node', 'State', 'Jobs', 'Cores', 'Memory', 'GPUs', 'Network and disk', 'Actions'];

interface Props {
  nodes: Node[];
  uses: ReadonlyMap<string, Use>;
  narrow: boolean;
  act(act: Act): void;
}

export function NodeList({ nodes, uses, narrow, act }: Props) {
  const [all, setAll] = useState(false);
  const shown = all ? nodes : nodes.slice(0, FIRST);
  const One = narrow ? NodeCard : NodeRow;
  const gpus = nodes.some((node) => node.gpus.length > 0);
  const list = shown.map((node) => (
    <One key={keyOf(node)} node={node} use={uses.get(keyOf(node))} gpus={gpus} act={act} />
  ));
  return (
    <>
      {narrow ? (
        <Stack gap="xs">{list}</Stack>
      ) : (
        <Table.ScrollContainer minWidth={900} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
          <Table verticalSpacing={6} highlightOnHover aria-label={`Nodes of ${nodes[0]?.compute ?? ''}`}>
            <Table.Thead>
              <Table.Tr>
                {COLUMNS.filter((name) => gpus || name !== 'GPUs').map((name) => (
                  <Table.Th key={name}>{name}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>{list}</Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {nodes.length > shown.length && (
        <Button variant="default" mt="xs" onClick={() => setAll(true)}>
          Show all {nodes.length}
        </Button>
      )}
    </>
  );
}

interface OfNode {
  node: Node;
  use: Use | undefined;
  /** Whether any node of its compute has a GPU. */
  gpus: boolean;
  act(act: Act): void;
}

const NodeRow = memo(function NodeRow({ node, use, gpus, act }: OfNode) {
  const why = whyNot(node);
  const row = (
    <Table.Tr style={why ? { borderBottom: 0 } : undefined}>
      <Table.Th scope="row" fw={600}>
        {node.name}
        <Text size="xs" c="dimmed">
          {node.address}
        </Text>
      </Table.Th>
      <Table.Td>
        <StateBadge state={node.state} />
      </Table.Td>
      <Table.Td>
        <NodeJobs node={node} />
      </Table.Td>
      <Table.Td>
        <Cores node={node} use={use} />
      </Table.Td>
      <Table.Td miw={210}>
        <Memory node={node} use={use} />
      </Table.Td>
      {gpus && (
        <Table.Td>
          <Gpus node={node} use={use} />
        </Table.Td>
      )}
      <Table.Td>
        <Traffic use={use} />
      </Table.Td>
      <Table.Td>
        <Actions node={node} act={act} />
      </Table.Td>
    </Table.Tr>
  );
  if (!why) return row;
  return (
    <>
      {row}
      <Table.Tr>
        <Table.Td colSpan={COLUMNS.length} pt={0} style={{ overflowWrap: 'anywhere' }}>
          {why}
        </Table.Td>
      </Table.Tr>
    </>
  );
});

const NodeCard = memo(function NodeCard({ node, use, gpus, act }: OfNode) {
  return (
    <Card withBorder padding="sm" component="article" aria-label={node.name}>
      <Stack gap="xs">
        <Group justify="space-between" align="flex-start" wrap="nowrap">
          <div>
            <Text fw={600}>{node.name}</Text>
            <Text size="xs" c="dimmed">
              {node.address}
            </Text>
          </div>
          <StateBadge state={node.state} />
        </Group>
        {whyNot(node) && (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            {whyNot(node)}
          </Text>
        )}
        <NodeJobs node={node} />
        <Cores node={node} use={use} named />
        <Memory node={node} use={use} named />
        {gpus && <Gpus node={node} use={use} named />}
        {use && <Traffic use={use} />}
        <Actions node={node} act={act} />
      </Stack>
    </Card>
  );
});

function Actions({ node, act }: { node: Node; act(act: Act): void }) {
  const cordoned = node.state === 'cordoned' || node.cordoned_by != null;
  const button = (kind: Act['kind'], word: string) => (
    <Button
      size="compact-sm"
      variant="default"
      aria-label={`${word} ${node.name}`}
      onClick={() => act({ kind, node })}
    >
      {word}
    </Button>
  );
  // Slurm looks after its own nodes; what tutti keeps its jobs from for a while can be given back.
  const local = node.compute === 'local';
  return (
    <Group gap={4} wrap="nowrap">
      {local && button('check', 'Check')}
      {cordoned ? button('uncordon', 'Uncordon') : local && button('cordon', 'Cordon')}
      {!local && !cordoned && <Text size="xs">by Slurm: scontrol</Text>}
    </Group>
  );
}
