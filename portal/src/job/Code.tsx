import type { Job } from '../api/client';

export default function Code({ job }: { job: Job }) {
  return <p>{job.id}</p>;
}
