// A job: its state and what can be done with it, and below that one of several views of it, each with an address.
import { Group, Stack, Tabs, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useLocation } from 'wouter';
import type { Job } from '../api/client';
import { jobQuery } from '../api/queries';
import { Failed, Loading } from '../parts/Notices';
import { StateBadge } from '../parts/StateBadge';

const VIEWS = {
  overview: { label: 'Overview', view: lazy(() => import('./Overview')), shown: () => true },
  steps: { label: 'Steps', view: lazy(() => import('./Steps')), shown: (job: Job) => job.type === 'pipeline' },
  trials: { label: 'Trials', view: lazy(() => import('./Trials')), shown: (job: Job) => job.type === 'sweep' },
  logs: { label: 'Logs', view: lazy(() => import('./Logs')), shown: (job: Job) => job.type === 'command' },
  metrics: { label: 'Metrics', view: lazy(() => import('./Metrics')), shown: (job: Job) => job.type === 'command' },
  files: { label: 'Files', view: lazy(() => import('./Files')), shown: () => true },
  code: { label: 'Code', view: lazy(() => import('./Code')), shown: () => true },
} as const;

type View = keyof typeof VIEWS;

export default function JobPage({ job: id, tab }: { job: string; tab?: string }) {
  const [, go] = useLocation();
  const { data: job, error } = useQuery(jobQuery(id));
  if (error && !job) return <Failed error={error} />;
  if (!job) return <Loading />;
  const shown = (Object.keys(VIEWS) as View[]).filter((name) => VIEWS[name].shown(job));
  const now = shown.includes(tab as View) ? (tab as View) : 'overview';
  const Now = VIEWS[now].view;
  return (
    <Stack>
      <Group>
        <Title order={1} size="h3">
          {job.display_name}
        </Title>
        <StateBadge state={job.state} />
      </Group>
      <Text c="dimmed">{job.reason}</Text>
      <Tabs value={now} onChange={(name) => go(`/jobs/${encodeURIComponent(id)}/${name}`)} keepMounted={false}>
        <Tabs.List>
          {shown.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {VIEWS[name].label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={now} pt="md">
          <Suspense fallback={<Loading />}>
            <Now job={job} />
          </Suspense>
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}
