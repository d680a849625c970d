// The portal's first page: all jobs that are no steps or trials of others.
import { Anchor, Code, Stack, Text, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { Empty, Failed, Loading } from '../parts/Notices';
import { usePageTitle } from '../parts/usePageTitle';
import { JobList } from './JobList';
import { jobsQuery } from './jobsQuery';

export function JobsPage() {
  usePageTitle('Jobs');
  return (
    <>
      <VisuallyHidden component="h1">Jobs</VisuallyHidden>
      <Jobs />
    </>
  );
}

function Jobs() {
  const { data, error } = useQuery(jobsQuery);
  if (!data) return error ? <Failed error={error} /> : <Loading />;
  return data.jobs.length > 0 ? <JobList table={data} /> : <NoJobs />;
}

/** What a service shows that has had no job yet: how the first one comes. */
function NoJobs() {
  return (
    <Empty title="No jobs yet">
      <Stack gap="xs" w="100%" maw={460}>
        <Text>On a machine that has tutti, run a script as a job:</Text>
        <Code block>tutti run train.py</Code>
        <Text>A job file also names nodes and an environment. Write one to begin with:</Text>
        <Code block>tutti init</Code>
        <Text>
          Or{' '}
          <Anchor component={Link} href="/submit" underline="always">
            submit a job file here
          </Anchor>
          .
        </Text>
      </Stack>
    </Empty>
  );
}
