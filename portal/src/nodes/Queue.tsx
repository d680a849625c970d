// The jobs that wait, in the order in which they are started, each with what it waits for.
import { Anchor, Button, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { answer, type JobSummary, service } from '../api/client';
import { LIVE } from '../api/queries';
import { ago, moment } from '../parts/format';
import { Failed, Loading } from '../parts/Notices';
import { inOrder } from './queue';

const MOST = 1_000;
const FIRST = 50; // jobs that are shown until one asks for all

const queueQuery = {
  queryKey: ['queue'],
  queryFn: () =>
    answer(service.GET('/v1/job-summaries', { params: { query: { state: 'Queued', limit: MOST } } })),
  refetchInterval: LIVE,
};

export function Queue() {
  const { data, error } = useQuery(queueQuery);
  const [all, setAll] = useState(false);
  if (error && !data) return <Failed error={error} />;
  if (!data) return <Loading />;
  if (data.jobs.length === 0) {
    return <Text c="dimmed">No job waits: one that you submit starts at once if it fits.</Text>;
  }
  const jobs = inOrder(data.jobs);
  const shown = all ? jobs : jobs.slice(0, FIRST);
  return (
    <>
      <Table.ScrollContainer minWidth={760} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
        <Table verticalSpacing={6} aria-label="Jobs that wait">
          <Table.Thead>
            <Table.Tr>
              {['Place', 'Job', 'Waits for', 'Nodes', 'Priority', 'Submitted', 'Expected start'].map((name) => (
                <Table.Th key={name}>{name}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map((job, index) => (
              <Row key={job.id} job={job} place={index + 1} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {jobs.length > shown.length && (
        <Button variant="default" mt="xs" onClick={() => setAll(true)}>
          Show all {jobs.length}
        </Button>
      )}
      {data.jobs.length === MOST && <Text size="sm">More wait: these are the newest {MOST}.</Text>}
    </>
  );
}

function Row({ job, place }: { job: JobSummary; place: number }) {
  return (
    <Table.Tr>
      <Table.Td>{place}</Table.Td>
      <Table.Td maw={260}>
        <Anchor component={Link} href={`/jobs/${encodeURIComponent(job.id)}`} size="sm" display="block"
          className="one-line">
          {job.display_name || job.id}
        </Anchor>
      </Table.Td>
      <Table.Td style={{ overflowWrap: 'anywhere' }} miw={220}>{job.reason}</Table.Td>
      <Table.Td>{job.node_count}</Table.Td>
      <Table.Td>{job.priority}</Table.Td>
      <Table.Td title={moment(job.created)} style={{ whiteSpace: 'nowrap' }}>{ago(job.created)}</Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        {job.expected_start ? moment(job.expected_start) : 'not known'}
      </Table.Td>
    </Table.Tr>
  );
}
