// What a service shows that has had no job yet: how the first one comes.
import { Anchor, Code, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import { Empty } from '../parts/Notices';

export function NoJobs() {
  return (
    <Empty title="No jobs yet">
      <Stack gap="xs" w="100%" maw={460}>
        <Text>A script runs as a job where it lies, on a machine that has tutti:</Text>
        <Code block>tutti run train.py</Code>
        <Text>A job file says more, as nodes and the environment. This writes one to begin with:</Text>
        <Code block>tutti init</Code>
        <Text>
          Or{' '}
          <Anchor component={Link} href="/submit" underline="always">
            submit a job file here
          </Anchor>
          .
        </Text>
      </Stack>
    </Empty>
  );
}
