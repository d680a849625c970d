// The steps in words: what each waits for, how long it ran, and why it is in its state.
import { Anchor, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Child } from '../../api/client';
import { StateBadge } from '../../parts/StateBadge';
import type { Edge } from './graph';
import { pathOf, ran, within } from './stepText';

interface Props {
  steps: Child[];
  edges: Edge[];
  now: number;
}

export function StepList({ steps, edges, now }: Props) {
  return (
    <Table.ScrollContainer minWidth={640} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
      <Table verticalSpacing={6} aria-label="Steps">
        <Table.Thead>
          <Table.Tr>
            {['Step', 'State', 'Ran', 'Takes', 'Why'].map((name) => (
              <Table.Th key={name}>{name}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {steps.map((step) => (
            <Row key={step.step} step={step} takes={edges.filter((edge) => edge.to === step.step)} now={now} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Row({ step, takes, now }: { step: Child; takes: Edge[]; now: number }) {
  const path = pathOf(step);
  return (
    <Table.Tr>
      <Table.Th scope="row" fw={600}>
        {path ? (
          <Anchor component={Link} href={path} size="sm">
            {step.step}
          </Anchor>
        ) : (
          step.step
        )}
        {within(step) && (
          <Text size="xs" c="dimmed">
            {within(step)}
          </Text>
        )}
      </Table.Th>
      <Table.Td>
        <StateBadge state={step.state} />
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>{ran(step, now) ?? '–'}</Table.Td>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        {takes.map(taken).join('; ') || '–'}
      </Table.Td>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        {step.reused_from ? <Reused from={step.reused_from} /> : step.reason || waits(step)}
      </Table.Td>
    </Table.Tr>
  );
}

function taken({ from, takes }: Edge): string {
  return takes.length > 0 ? `${takes.join(', ')} of ${from}` : `after ${from}`;
}

function waits(step: Child): string {
  return step.state === 'Waiting' ? 'waits for what it takes' : '';
}

function Reused({ from }: { from: string }) {
  return (
    <>
      reused: nothing has changed since{' '}
      <Anchor component={Link} href={`/jobs/${encodeURIComponent(from)}`} size="sm" underline="always">
        {from}
      </Anchor>
    </>
  );
}
