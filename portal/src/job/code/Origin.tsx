// Where a job's code comes from, as its submitter's git said.
import { Anchor, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Job } from '../../api/client';

export function Origin({ job }: { job: Job }) {
  const { git_commit, git_branch, git_repository, git_dirty, program, rerun_of, resumes_from } = job.origin;
  const jobLink = (id: string) => (
    <Anchor component={Link} href={`/jobs/${encodeURIComponent(id)}`} inherit underline="always" c="inherit">
      {id}
    </Anchor>
  );
  if (!git_commit && !program && !rerun_of && !resumes_from) return null;
  return (
    <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
      {git_commit && (
        <>
          Git commit <span className="mono">{git_commit.slice(0, 12)}</span>
          {git_branch && ` of branch ${git_branch}`}
          {git_repository && ` in ${git_repository}`}
          {git_dirty === 'true' ? ', with changes that were not committed. ' : '. '}
        </>
      )}
      {program && `Program: ${program}. `}
      {rerun_of && <>Rerun of {jobLink(rerun_of)}. </>}
      {resumes_from && <>Goes on from {jobLink(resumes_from)}. </>}
    </Text>
  );
}
