// The job file as it was submitted, and how it differs from that of another job.
import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import type { Job, Schemas } from '../../api/client';
import { submissionQuery } from '../../api/queries';
import { fileText } from '../../api/submittedFile';
import { Difference } from '../../parts/Difference';
import { Lines, linesOf } from '../../parts/Lines';
import { Failed, Loading } from '../../parts/Notices';

interface Props {
  job: Job;
  submission: Schemas['JobSubmission'];
  other: string | null;
}

export function JobFile({ job, submission, other }: Props) {
  const lines = useMemo(() => linesOf(submission.text), [submission]);
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {fileText(submission)}
        </Text>
        <Button
          component={Link}
          href={`/submit?from=${encodeURIComponent(job.id)}`}
          size="compact-sm"
          variant="light"
        >
          Rerun with changes
        </Button>
      </Group>
      <Lines lines={lines} label="Job file" height="50vh" />
      {other && <JobFileChanges text={submission.text} other={other} />}
    </Stack>
  );
}

function JobFileChanges({ text, other }: { text: string; other: string }) {
  const { data, error } = useQuery(submissionQuery(other));
  if (error) return <Failed error={error} />;
  if (!data) return <Loading />;
  return (
    <>
      <Text size="sm" fw={600}>
        Changes since{' '}
        <Anchor component={Link} href={`/jobs/${encodeURIComponent(other)}`} inherit>
          {other}
        </Anchor>
      </Text>
      <Difference before={data.text} after={text} label={`Changes since ${other}`} height="50vh" />
    </>
  );
}
