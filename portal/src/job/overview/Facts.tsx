// What a job is and where it comes from.
import { Anchor, Badge, Group, Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Job } from '../../api/client';
import { ago, bytes, duration, moment, secondsBetween } from '../../parts/format';
import classes from './overview.module.css';

export function Facts({ job }: { job: Job }) {
  const facts = factsOf(job).filter(([, value]) => value !== null && value !== '' && value !== undefined);
  return (
    <Paper withBorder p="sm">
      <Stack gap="sm">
        <Title order={2} size="h5">
          About
        </Title>
        {job.description && <Text size="sm">{job.description}</Text>}
        <dl className={classes.facts}>
          {facts.map(([name, value]) => (
            <Fact key={name} name={name} value={value} />
          ))}
        </dl>
      </Stack>
    </Paper>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

function factsOf(job: Job): [string, ReactNode][] {
  const { origin, stored_logs: stored } = job;
  const ran = secondsBetween(job.started, job.ended);
  const commit = origin.git_commit;
  return [
    ['Kind', job.type],
    ['Experiment', job.experiment_name],
    ['Command', job.command && <code>{job.command}</code>],
    ['Submitted', `${moment(job.created)}, ${ago(job.created)}`],
    ['Ran', ran === null ? null : `${duration(ran)}${job.ended ? '' : ' so far'}`],
    ['Compute', job.compute],
    ['Nodes', job.node_count > 0 ? nodesOf(job) : null],
    ['Ranks', job.world_size || null],
    ['A share of each', shareOf(job)],
    ['Priority', job.priority],
    ['Environment', job.environment],
    ['Most memory of a rank', job.peak_memory === null ? null : bytes(job.peak_memory)],
    ['Tags', tagsOf(job.tags)],
    ['Program', origin.program],
    ['Commit', commit && <code title={commit}>{commit.slice(0, 12)}{dirtyOf(origin)}</code>],
    ['Branch', origin.git_branch],
    ['Repository', origin.git_repository],
    ['Rerun of', origin.rerun_of && <JobLink id={origin.rerun_of} />],
    ['Resumes from', origin.resumes_from && <JobLink id={origin.resumes_from} />],
    ['Models', listOf(job.logged.models.map(({ name }) => name))],
    ['Parameters', listOf(job.logged.params.map(({ name, value }) => `${name} = ${value}`))],
    ['MLflow run', job.mlflow_run && `${job.mlflow_run.name || job.mlflow_run.id} (${job.mlflow_run.id})`],
    ['Logs are stored', stored && `${stored.state}: ${stored.place} ${stored.reason}`],
    ['Removed', listOf(job.removed.map(({ kind, time }) => `${kind}, ${ago(time)}`))],
    ...othersOf(origin),
  ];
}

const KNOWN = new Set([
  'git_commit', 'git_branch', 'git_repository', 'git_dirty', 'program', 'rerun_of', 'resumes_from',
]);

function othersOf(origin: Record<string, string>): [string, ReactNode][] {
  return Object.entries(origin).filter(([name]) => !KNOWN.has(name));
}

function dirtyOf(origin: Record<string, string>): string {
  return origin.git_dirty && origin.git_dirty !== 'false' ? ' with changes' : '';
}

const FEW = 16;

function nodesOf({ node_count, nodes }: Job): string {
  if (nodes.length === 0) return String(node_count);
  const told = nodes.slice(0, FEW).join(', ');
  return `${node_count}: ${told}${nodes.length > FEW ? ` and ${nodes.length - FEW} more` : ''}`;
}

function shareOf({ part }: Job): string | null {
  if (!part) return null;
  const memory = part.memory_bytes > 0 ? `, ${bytes(part.memory_bytes)}` : '';
  return `${part.cpus} processors${memory}${part.gpus > 0 ? `, ${part.gpus} GPUs` : ''}`;
}

function listOf(items: string[]): ReactNode {
  if (items.length === 0) return null;
  return items.slice(0, FEW).map((item) => <div key={item}>{item}</div>);
}

function tagsOf(tags: Record<string, string>): ReactNode {
  const all = Object.entries(tags);
  if (all.length === 0) return null;
  return (
    <Group gap={4}>
      {all.map(([name, value]) => (
        <Badge key={name} variant="default" size="sm" radius="sm" tt="none">
          {value ? `${name}: ${value}` : name}
        </Badge>
      ))}
    </Group>
  );
}

function JobLink({ id }: { id: string }) {
  return (
    <Anchor component={Link} href={`/jobs/${encodeURIComponent(id)}`} underline="always" inherit>
      {id}
    </Anchor>
  );
}
