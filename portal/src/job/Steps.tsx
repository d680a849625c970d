// A pipeline: its steps as a graph and as a list, each with its state, live while they run.
import { Alert, Box, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Job } from '../api/client';
import { Empty } from '../parts/Notices';
import { useNow } from '../parts/useNow';
import { edgesOf } from './steps/graph';
import { specQuery } from './steps/spec';
import { StepGraph } from './steps/StepGraph';
import { StepList } from './steps/StepList';
import { isUnderWay } from './steps/stepText';

export default function Steps({ job }: { job: Job }) {
  const { data: spec, error, isPending } = useQuery(specQuery(job));
  const edges = useMemo(() => (spec ? edgesOf(spec) : []), [spec]);
  const now = useNow(job.children.some(isUnderWay));
  if (job.children.length === 0) {
    return (
      <Empty title="There are no steps yet">
        <Text>They are here once the service has taken the pipeline up: {job.reason}</Text>
      </Empty>
    );
  }
  return (
    <Stack>
      {error && <Alert color="yellow">What waits for what is not known: {error.message}</Alert>}
      {!isPending && (
        <Box visibleFrom="sm">
          <StepGraph steps={job.children} edges={edges} now={now} />
        </Box>
      )}
      <StepList steps={job.children} edges={edges} now={now} />
    </Stack>
  );
}
