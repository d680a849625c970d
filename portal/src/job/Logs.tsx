import type { Job } from '../api/client';

export default function Logs({ job }: { job: Job }) {
  return <p>{job.id}</p>;
}
