// The jobs that wait, of each compute, in the order in which the service says they are taken.
import { Anchor, Button, Table, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { answer, type Schemas, service } from '../api/client';
import { LIVE } from '../api/queries';
import { ago, moment, startText } from '../parts/format';
import { Failed, Loading } from '../parts/Notices';

const FIRST = 50; // jobs of a compute that are shown until one asks for more
const MOST = 1_000; // that the service tells

const queuesQuery = (limit: number) => ({
  queryKey: ['queues', limit],
  queryFn: () => answer(service.GET('/v1/queues', { params: { query: { limit } } })),
  refetchInterval: LIVE,
  placeholderData: keepPreviousData,
});

export function Queue() {
  const [limit, setLimit] = useState(FIRST);
  const { data, error } = useQuery(queuesQuery(limit));
  if (error && !data) return <Failed error={error} />;
  if (!data) return <Loading />;
  if (data.queues.length === 0) {
    return <Text c="dimmed">No job waits: one that you submit starts at once if it fits.</Text>;
  }
  return data.queues.map((queue) => <Waiting key={queue.compute} queue={queue} more={() => setLimit(MOST)} />);
}

function Waiting({ queue, more }: { queue: Schemas['Queue']; more(): void }) {
  const { compute, count, jobs } = queue;
  const ordered = jobs.every(({ place }) => place !== null);
  const left = count - jobs.length;
  return (
    <section aria-label={`Queue of ${compute}`}>
      <Title order={3} size="h6" mt="xs">
        {compute}: {count.toLocaleString('en')} {count === 1 ? 'waits' : 'wait'}
      </Title>
      {!ordered && (
        <Text size="sm">Their places are not known, as the cluster decides; here in order of submission.</Text>
      )}
      <Table.ScrollContainer minWidth={760} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
        <Table verticalSpacing={6} aria-label={`Jobs that wait for ${compute}`}>
          <Table.Thead>
            <Table.Tr>
              {['Place', 'Job', 'Waits for', 'Nodes', 'Priority', 'Submitted', 'Starts'].map((name) => (
                <Table.Th key={name}>{name}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {jobs.map((job) => (
              <Row key={job.id} job={job} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {left > 0 && jobs.length <= FIRST && (
        <Button variant="default" mt="xs" onClick={more}>
          {count > MOST ? `Show the first ${MOST.toLocaleString('en')}` : `Show all ${count.toLocaleString('en')}`}
        </Button>
      )}
      {left > 0 && jobs.length > FIRST && (
        <Text size="sm">{left.toLocaleString('en')} more wait behind these.</Text>
      )}
    </section>
  );
}

function Row({ job }: { job: Schemas['QueuedJob'] }) {
  return (
    <Table.Tr>
      <Table.Td>{job.place ?? 'not known'}</Table.Td>
      <Table.Td maw={260}>
        <JobLink id={job.id} name={job.display_name} />
        {job.parent && (
          <Text size="xs" component="div">
            {job.step === job.display_name ? 'of' : `${job.step} of`} <JobLink id={job.parent} name={job.parent} />
          </Text>
        )}
      </Table.Td>
      <Table.Td style={{ overflowWrap: 'anywhere' }} miw={220}>{job.reason}</Table.Td>
      <Table.Td>{job.node_count}</Table.Td>
      <Table.Td>{job.priority}</Table.Td>
      <Table.Td title={moment(job.created)} style={{ whiteSpace: 'nowrap' }}>{ago(job.created)}</Table.Td>
      <Table.Td>{startText(job) || 'not known'}</Table.Td>
    </Table.Tr>
  );
}

function JobLink({ id, name }: { id: string; name: string }) {
  return (
    <Anchor component={Link} href={`/jobs/${encodeURIComponent(id)}`} size="sm" className="one-line">
      {name}
    </Anchor>
  );
}
