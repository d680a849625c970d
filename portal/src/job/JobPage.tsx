// A job: its state and what can be done with it, and below that one of several views of it, each with an address.
import { Anchor, Button, Code, CopyButton, Group, Stack, Tabs, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Link, useLocation } from 'wouter';
import { type Job, ServiceError } from '../api/client';
import { jobQuery } from '../api/queries';
import { Boundary } from '../parts/Boundary';
import { Empty, Failed, Loading } from '../parts/Notices';
import { StateBadge } from '../parts/StateBadge';
import { usePageTitle } from '../parts/usePageTitle';
import { JobActions } from './frame/JobActions';
import { WhyBlock } from './frame/WhyBlock';
import Logs from './Logs';
import Overview from './Overview';

const VIEWS = {
  overview: { label: 'Overview', view: Overview, shown: () => true },
  steps: { label: 'Steps', view: lazy(() => import('./Steps')), shown: (job: Job) => job.type === 'pipeline' },
  trials: { label: 'Trials', view: lazy(() => import('./Trials')), shown: (job: Job) => job.type === 'sweep' },
  logs: { label: 'Logs', view: Logs, shown: (job: Job) => job.type === 'command' },
  metrics: { label: 'Metrics', view: lazy(() => import('./Metrics')), shown: (job: Job) => job.type === 'command' },
  files: { label: 'Files', view: lazy(() => import('./Files')), shown: () => true },
  code: { label: 'Code', view: lazy(() => import('./Code')), shown: () => true },
} as const;

type View = keyof typeof VIEWS;

export default function JobPage({ job: id, tab }: { job: string; tab?: string }) {
  const [, go] = useLocation();
  const { data: job, error } = useQuery(jobQuery(id));
  usePageTitle(job?.display_name || id);
  if (error && !job) return <NotThere id={id} error={error} />;
  if (!job) return <Loading />;
  const shown = (Object.keys(VIEWS) as View[]).filter((name) => VIEWS[name].shown(job));
  const now = shown.includes(tab as View) ? (tab as View) : 'overview';
  const Now = VIEWS[now].view;
  return (
    <Stack gap="sm">
      <Head job={job} />
      <WhyBlock job={job} brief={now !== 'overview'} />
      <Tabs value={now} onChange={(name) => go(`/jobs/${encodeURIComponent(id)}/${name}`)} keepMounted={false}>
        <Tabs.List>
          {shown.map((name) => (
            <Tabs.Tab key={name} value={name} px="sm">
              {VIEWS[name].label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={now} pt="sm">
          <Boundary place={now}>
            <Suspense fallback={<Loading />}>
              <Now job={job} />
            </Suspense>
          </Boundary>
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

function Head({ job }: { job: Job }) {
  return (
    <Stack gap={4}>
      {job.parent && (
        <Text size="sm">
          {job.step} of{' '}
          <Anchor component={Link} href={`/jobs/${encodeURIComponent(job.parent)}`} underline="always">
            {job.parent}
          </Anchor>
        </Text>
      )}
      <Group gap="sm" align="center">
        <Title order={1} size="h3" style={{ overflowWrap: 'anywhere' }}>
          {job.display_name}
        </Title>
        <StateBadge state={job.state} />
        <div style={{ marginLeft: 'auto' }}>
          <JobActions job={job} />
        </div>
      </Group>
      <Group gap={4} wrap="nowrap">
        <Code style={{ overflowWrap: 'anywhere' }}>{job.id}</Code>
        <CopyButton value={job.id}>
          {({ copied, copy }) => (
            <Button variant="default" size="compact-xs" onClick={copy} aria-label="Copy the job's id">
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </Group>
    </Stack>
  );
}

function NotThere({ id, error }: { id: string; error: Error }) {
  if (!(error instanceof ServiceError && error.status === 404)) return <Failed error={error} />;
  return (
    <Empty title={`There is no job ${id}`}>
      <Text>It may have been deleted.</Text>
      <Anchor component={Link} href="/" underline="always">
        All jobs
      </Anchor>
    </Empty>
  );
}
