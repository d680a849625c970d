// The portal's first page: all jobs that are no steps or trials of others.
import { VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Failed, Loading } from '../parts/Notices';
import { usePageTitle } from '../parts/usePageTitle';
import { JobList } from './JobList';
import { jobsQuery } from './jobsQuery';
import { NoJobs } from './NoJobs';

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
