// From queued to done: how long what took, and why it changed.
import { Anchor, Group, Paper, Stack, Table, Text, Title, Tooltip } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, type Job, service } from '../../api/client';
import { hasEnded } from '../../api/queries';
import { duration, moment } from '../../parts/format';
import { StateBadge } from '../../parts/StateBadge';
import { useNow } from '../../parts/useNow';
import classes from './overview.module.css';
import { type Event, type Phase, phasesOf, widthsOf } from './phases';

export function Timeline({ job }: { job: Job }) {
  const now = useNow(!hasEnded(job.state));
  const older = useOlderEvents(job);
  const events: Event[] = [...older.events, ...job.events];
  const phases = phasesOf(events, now);
  const widths = widthsOf(phases);
  return (
    <Paper withBorder p="sm">
      <Stack gap="sm">
        <Title order={2} size="h5">
          Timeline
        </Title>
        <div className={classes.bar} aria-hidden>
          {phases.map((phase, at) =>
            widths[at] === 0 ? null : (
              <Tooltip key={phase.events[0]!.sequence} label={`${phase.state}: ${lengthOf(phase)}`}>
                <div className={classes.phase} data-state={phase.state} style={{ width: `${widths[at]}%` }}>
                  {widths[at]! > 12 && <span className="one-line">{phase.state}</span>}
                </div>
              </Tooltip>
            ),
          )}
        </div>
        {older.more && (
          <Anchor component="button" type="button" size="sm" ta="left" underline="always" onClick={older.more}>
            Show earlier events
          </Anchor>
        )}
        <Table.ScrollContainer minWidth={300}>
          <Table verticalSpacing={4} horizontalSpacing="xs" fz="sm">
            <Table.Thead>
              <Table.Tr>
                <Table.Th w={120}>State</Table.Th>
                <Table.Th w={130} visibleFrom="sm">
                  Took
                </Table.Th>
                <Table.Th w={170} visibleFrom="sm">
                  From
                </Table.Th>
                <Table.Th>Why</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {phases.map((phase) => (
                <PhaseRow key={phase.events[0]!.sequence} phase={phase} />
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      </Stack>
    </Paper>
  );
}

const FEW = 3;

function PhaseRow({ phase }: { phase: Phase }) {
  const [all, setAll] = useState(false);
  const { events } = phase;
  const shown = all ? events : events.slice(-FEW);
  return (
    <Table.Tr style={{ verticalAlign: 'top' }}>
      <Table.Td>
        <StateBadge state={phase.state} />
        <Text size="xs" hiddenFrom="sm">
          {lengthOf(phase)}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">{lengthOf(phase)}</Table.Td>
      <Table.Td visibleFrom="sm">{moment(events[0]!.time)}</Table.Td>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>
        {shown.length < events.length && (
          <Anchor component="button" type="button" size="sm" underline="always" onClick={() => setAll(true)}>
            {events.length - shown.length} before
          </Anchor>
        )}
        {shown.map((event, at) => (
          <Group key={event.sequence} gap="xs" wrap="nowrap" align="baseline">
            <Text size="sm" lineClamp={3} title={event.reason}>
              {event.reason}
            </Text>
            {at > 0 && (
              <Text size="xs" c="dimmed" flex="none">
                {moment(event.time)}
              </Text>
            )}
          </Group>
        ))}
      </Table.Td>
    </Table.Tr>
  );
}

function lengthOf({ from, to, lasts }: Phase): string {
  if (from === to && !lasts) return '';
  const seconds = (to - from) / 1000;
  const told = seconds < 1 ? `${Math.round(1000 * seconds)} ms` : duration(seconds);
  return lasts ? `${told} so far` : told;
}

/** Events before those of the job's view, a page at a time. */
function useOlderEvents(job: Job): { events: Event[]; more: (() => void) | null } {
  const [asked, setAsked] = useState<number | null>(null);
  const query = useInfiniteQuery({
    queryKey: ['events', job.id, asked],
    enabled: asked !== null,
    initialPageParam: asked ?? 0,
    queryFn: ({ pageParam }) =>
      answer(
        service.GET('/v1/jobs/{job}/events', { params: { path: { job: job.id }, query: { before: pageParam } } }),
      ),
    getNextPageParam: (page) => page.before,
    staleTime: Infinity,
  });
  // The newest page moves on while the job lives; what lies between it and the pages asked for is part of neither.
  const first = job.events[0]?.sequence ?? 0;
  const pages = [...(query.data?.pages ?? [])].reverse();
  const events = pages.flatMap((page) => page.events).filter(({ sequence }) => sequence < first);
  if (asked === null) return { events, more: job.events_before === null ? null : () => setAsked(job.events_before) };
  return { events, more: query.hasNextPage ? () => void query.fetchNextPage() : null };
}
