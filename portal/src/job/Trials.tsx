import type { Job } from '../api/client';

export default function Trials({ job }: { job: Job }) {
  return <p>{job.id}</p>;
}
