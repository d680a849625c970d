import type { Job } from '../api/client';

export default function Overview({ job }: { job: Job }) {
  return <p>{job.id}</p>;
}
