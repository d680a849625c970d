import type { JobSummary } from '../api/client';

/** What a job is called: its display name, or its id where nothing of that name could be seen or clicked on. */
export function nameOf(job: Pick<JobSummary, 'id' | 'display_name'>): string {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(job.display_name) ? job.display_name : job.id;
}
