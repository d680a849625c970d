// What one wants to know of a job at first: its way to where it is, its ranks, its numbers, what it is.
import { Alert, Anchor, Grid, Group, Paper, Stack, Table, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { Child, Job } from '../api/client';
import { number } from '../parts/format';
import { byInterest } from '../parts/metricOrder';
import { StateBadge } from '../parts/StateBadge';
import { Facts } from './overview/Facts';
import { Ranks } from './overview/Ranks';
import { Timeline } from './overview/Timeline';

export default function Overview({ job }: { job: Job }) {
  return (
    <Grid gap="sm">
      <Grid.Col span={{ base: 12, md: 8 }}>
        <Stack gap="sm">
          {job.warnings.map((warning) => (
            <Alert key={warning} color="yellow" py={6}>
              {warning}
            </Alert>
          ))}
          <Timeline job={job} />
          {job.type === 'command' && <Ranks job={job} />}
          {job.type !== 'command' && <Children job={job} />}
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Stack gap="sm">
          <LastMetrics job={job} />
          <Facts job={job} />
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

const FEW_METRICS = 12;

function LastMetrics({ job }: { job: Job }) {
  const metrics = [...job.logged.metrics].sort((a, b) => byInterest(a.name, b.name));
  if (metrics.length === 0) return null;
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h5">
          Metrics
        </Title>
        <Anchor component={Link} href={`/jobs/${encodeURIComponent(job.id)}/metrics`} size="sm" underline="always">
          {metrics.length > FEW_METRICS ? `All ${metrics.length}, with charts` : 'Charts'}
        </Anchor>
      </Group>
      <Table verticalSpacing={2} horizontalSpacing="xs" fz="sm" layout="fixed">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th ta="right">Last</Table.Th>
            <Table.Th ta="right" w={80}>
              Step
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {metrics.slice(0, FEW_METRICS).map(({ name, value, step }) => (
            <Table.Tr key={name}>
              <Table.Td className="one-line" title={name}>
                {name}
              </Table.Td>
              <Table.Td ta="right" ff="monospace">
                {value === null ? 'not finite' : number(value)}
              </Table.Td>
              <Table.Td ta="right" ff="monospace">
                {step}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}

const FEW_CHILDREN = 20;

/** The jobs that it has started, as far as the page has room; their own view has all. */
function Children({ job }: { job: Job }) {
  const view = job.type === 'sweep' ? 'trials' : 'steps';
  const count = job.trials?.count ?? job.children.length;
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h5">
          {count} {view}
        </Title>
        <Anchor component={Link} href={`/jobs/${encodeURIComponent(job.id)}/${view}`} size="sm" underline="always">
          All {view}
        </Anchor>
      </Group>
      {count === 0 && <Text size="sm">None has been started yet.</Text>}
      {count > 0 && (
        <Table verticalSpacing={4} horizontalSpacing="xs" fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Name</Table.Th>
              <Table.Th w={110}>State</Table.Th>
              <Table.Th visibleFrom="sm">Why</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {job.children.slice(0, FEW_CHILDREN).map((child) => (
              <ChildRow key={child.step} child={child} />
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Paper>
  );
}

function ChildRow({ child }: { child: Child }) {
  return (
    <Table.Tr style={{ verticalAlign: 'top' }}>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        {child.id ? (
          <Anchor component={Link} href={`/jobs/${encodeURIComponent(child.id)}`} underline="always" inherit>
            {child.step}
          </Anchor>
        ) : (
          child.step
        )}
      </Table.Td>
      <Table.Td>
        <StateBadge state={child.state} />
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ overflowWrap: 'anywhere' }}>
        {child.reason}
      </Table.Td>
    </Table.Tr>
  );
}
