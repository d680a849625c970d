import type { Job } from '../api/client';

export default function Steps({ job }: { job: Job }) {
  return <p>{job.id}</p>;
}
