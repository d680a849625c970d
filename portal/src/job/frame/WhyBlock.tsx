// Why a job is in its state: what made it fail, or what it waits for.
import { Alert, Anchor, Group, List, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Job } from '../../api/client';
import { duration, secondsBetween, startText } from '../../parts/format';
import { sentence } from '../../parts/sentence';

type Failure = Job['failures'][number];

export function WhyBlock({ job, brief }: { job: Job; brief: boolean }) {
  if (job.state === 'Failed') return <Cause job={job} brief={brief} />;
  if (job.state === 'Queued') return <Wait job={job} />;
  const reason = sentence(job.reason);
  return reason && reason !== job.state ? <Text c="dimmed">{reason}</Text> : null;
}

function Cause({ job, brief }: { job: Job; brief: boolean }) {
  const cause = job.failures.find((failure) => !failure.consequence);
  const others = job.failures.filter((failure) => failure !== cause);
  const child = failedChild(job);
  return (
    <Alert color="red" variant="light" title={cause ? `${whoOf(cause)} ${cause.what}` : sentence(job.reason)} role="alert">
      <Stack gap={4}>
        {cause && cause.rank !== null && job.type === 'command' && (
          <Text size="sm">
            <Way to={`/jobs/${encodeURIComponent(job.id)}/logs?cause=1`}>See where it begins in the logs</Way>
          </Text>
        )}
        {child && (
          <Text size="sm">
            <Way to={`/jobs/${encodeURIComponent(child.id)}`}>See {child.step}</Way>, which failed first: {child.reason}
          </Text>
        )}
        {!brief && others.length > 0 && <Consequences failures={others} />}
      </Stack>
    </Alert>
  );
}

function Way({ to, children }: { to: string; children: ReactNode }) {
  return (
    <Anchor component={Link} href={to} inherit c="inherit" underline="always">
      {children}
    </Anchor>
  );
}

const MANY = 100;

function Consequences({ failures }: { failures: Failure[] }) {
  const [open, { toggle }] = useDisclosure(false);
  return (
    <>
      <Anchor
        component="button"
        type="button"
        size="sm"
        c="inherit"
        ta="left"
        underline="always"
        aria-expanded={open}
        onClick={toggle}
      >
        {open ? 'Hide what followed from it' : `What followed from it: ${failures.length}`}
      </Anchor>
      {open && (
        <List size="sm">
          {failures.slice(0, MANY).map((failure, at) => (
            <List.Item key={at}>
              {whoOf(failure)} {failure.what}
            </List.Item>
          ))}
        </List>
      )}
      {open && failures.length > MANY && <Text size="sm">and {failures.length - MANY} more</Text>}
    </>
  );
}

function whoOf({ rank, node }: Failure): string {
  if (rank === null) return `Node ${node}`;
  return node ? `Rank ${rank} on ${node}` : `Rank ${rank}`;
}

/** The child that failed first, of a pipeline or sweep. */
function failedChild(job: Job): { id: string; step: string; reason: string } | null {
  const failed = [...job.children, ...(job.trials?.failed ?? [])].filter(({ state, id }) => state === 'Failed' && id);
  failed.sort((one, other) => (one.ended ?? '').localeCompare(other.ended ?? ''));
  const first = failed[0];
  return first ? { id: first.id!, step: first.step, reason: first.reason } : null;
}

/** Its place in the queue and who is ahead, as the service tells it. */
function Place({ job: { queue, compute, type } }: { job: Job }) {
  if (!queue) {
    if (compute === 'local' || type !== 'command') return null;
    return <Text size="sm">Its place is not known: the cluster of {compute} decides.</Text>;
  }
  const more = queue.place - 1 - queue.ahead.length;
  return (
    <Text size="sm">
      Place {queue.place.toLocaleString('en')} in the queue{queue.ahead.length > 0 ? ', behind ' : ''}
      {queue.ahead.map(({ id, display_name }, at) => (
        <span key={id}>
          {at > 0 && ', '}
          <Anchor component={Link} href={`/jobs/${encodeURIComponent(id)}`} inherit c="inherit" underline="always">
            {display_name}
          </Anchor>
        </span>
      ))}
      {more > 0 && ` and ${more.toLocaleString('en')} more`}.
    </Text>
  );
}

function Wait({ job }: { job: Job }) {
  const until = secondsBetween(new Date().toISOString(), job.expected_start);
  return (
    <Alert color="gray" variant="light" title={sentence(job.reason) || 'Waits'} role="status">
      <Group gap="md">
        <Text size="sm">
          {!job.expected_start || until === null
            ? 'When it starts cannot be told yet.'
            : until > 0
              ? `Starts ${startText(job)}: in ${duration(until)}.`
              : `Was expected to start ${startText(job)}.`}
        </Text>
        <Place job={job} />
        <Anchor component={Link} href="/nodes" size="sm" c="inherit" underline="always">
          See who has the nodes
        </Anchor>
      </Group>
    </Alert>
  );
}
