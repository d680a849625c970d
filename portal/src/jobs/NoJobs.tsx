// What a service shows that has had no job yet: how the first one comes.
import { Anchor, Code, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import { Empty } from '../parts/Notices';

export function NoJobs() {
  return (
    <Empty title="No jobs yet">
      <Stack gap="xs" w="100%" maw={460}>
        <Text>On a machine that has tutti, run a script as a job:</Text>
        <Code block>tutti run train.py</Code>
        <Text>A job file also names nodes and an environment. Write one to begin with:</Text>
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
