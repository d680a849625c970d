import type { Job } from '../api/client';

export default function Metrics({ job }: { job: Job }) {
  return <p>{job.id}</p>;
}
