// What the service read of the job file: the environment of the job, and all keys with their defaults.
import { Anchor, Code, List, Stack, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { Job, Schemas } from '../../api/client';
import { Empty } from '../../parts/Notices';
import { JsonTree } from '../files/JsonTree';

interface Environment {
  is_host?: boolean;
  name?: string;
  python?: string;
  packages?: string[];
  options?: string[];
}

export function AsRead({ job, submission }: { job: Job; submission: Schemas['JobSubmission'] }) {
  const read = submission.job as Record<string, unknown> | null;
  if (!read) return <Empty title="This is not known of a job that an older service took" />;
  return (
    <Stack>
      {job.type === 'command' && <OneEnvironment environment={(read.environment ?? {}) as Environment} job={job} />}
      <Title order={2} size="h5">
        All that was read, with defaults
      </Title>
      <JsonTree value={read} />
    </Stack>
  );
}

function OneEnvironment({ environment, job }: { environment: Environment; job: Job }) {
  const { is_host, name, python, packages = [], options = [] } = environment;
  return (
    <Stack gap="xs">
      <Title order={2} size="h5">
        Environment
      </Title>
      <Text size="sm">
        {is_host ? 'What is installed on the nodes (host).' : name}
        {python && ` Python ${python}.`}{' '}
        <Anchor
          component={Link}
          href={`/jobs/${encodeURIComponent(job.id)}/files?path=logs/environment.txt`}
          inherit
          underline="always"
          c="inherit"
        >
          What its processes found
        </Anchor>
      </Text>
      {packages.length > 0 && (
        <List size="sm" aria-label="Packages">
          {packages.map((each) => (
            <List.Item key={each}>{each}</List.Item>
          ))}
        </List>
      )}
      {options.length > 0 && <Code block>{options.join('\n')}</Code>}
    </Stack>
  );
}
