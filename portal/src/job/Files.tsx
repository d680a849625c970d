import type { Job } from '../api/client';

export default function Files({ job }: { job: Job }) {
  return <p>{job.id}</p>;
}
