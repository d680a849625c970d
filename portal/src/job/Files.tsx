// The logs and outputs of a job: a tree of them, and beside it the one that the address names.
import { Anchor, CloseButton, Grid, Group, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import type { Job } from '../api/client';
import { filesQuery, hasEnded, LIVE } from '../api/queries';
import { CopyCommand } from '../parts/CopyCommand';
import { FileTree } from '../parts/FileTree';
import { bytes } from '../parts/format';
import { Empty, Failed, Loading } from '../parts/Notices';
import { useView } from '../parts/useView';
import { FetchResults } from './files/FetchResults';
import { Preview } from './files/Preview';

export default function Files({ job }: { job: Job }) {
  const ended = hasEnded(job.state);
  const { data, error } = useQuery({ ...filesQuery(job.id), refetchInterval: ended ? false : LIVE });
  if (error && !data) return <Failed error={error} />;
  if (!data) return <Loading />;
  const runs = job.state === 'Running' && job.type === 'command';
  return (
    <Stack>
      {runs && <FetchResults job={job.id} />}
      {data.files.length === 0 ? <NoFiles job={job} /> : <Explorer job={job} files={data.files} />}
    </Stack>
  );
}

function Explorer({ job, files }: { job: Job; files: { path: string; bytes: number }[] }) {
  const [view, setView] = useView();
  const filter = view.get('filter') ?? '';
  const path = view.get('path');
  const seen = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return files.filter((file) => words.every((word) => file.path.toLowerCase().includes(word)));
  }, [files, filter]);
  const chosen = files.find((file) => file.path === path);
  const all = files.reduce((sum, file) => sum + file.bytes, 0);
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Stack gap="xs">
          <TextInput
            aria-label="Filter files"
            placeholder="Filter by name"
            value={filter}
            onChange={(event) => setView({ filter: event.currentTarget.value })}
            rightSection={
              filter && <CloseButton size="sm" aria-label="No filter" onClick={() => setView({ filter: null })} />
            }
          />
          {seen.length > 0 ? (
            <FileTree
              files={seen}
              chosen={path}
              onChoose={(to) => setView({ path: to }, { push: true })}
              label="Files of the job"
              unfolded={filter !== ''}
              height="55vh"
            />
          ) : (
            <Text size="sm">No file has “{filter}” in its name. Clear the filter to see all {files.length}.</Text>
          )}
          <Text size="sm">
            {seen.length < files.length && `${seen.length} of `}
            {files.length} {files.length === 1 ? 'file' : 'files'}, {bytes(all)}. All of them:
          </Text>
          <CopyCommand command={`tutti job download ${job.id}`} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8 }}>
        {chosen ? (
          <Preview key={chosen.path} job={job.id} file={chosen} />
        ) : (
          <Empty title={path ? 'This file is not there' : 'No file is chosen'}>
            <Text ta="center" style={{ overflowWrap: 'anywhere' }}>
              {path ? `The job has no ${path} now. Choose another one.` : 'Choose one to see what is in it.'}
            </Text>
          </Empty>
        )}
      </Grid.Col>
    </Grid>
  );
}

const PARTS = { pipeline: { tab: 'steps', name: 'steps' }, sweep: { tab: 'trials', name: 'trials' } };

function NoFiles({ job }: { job: Job }) {
  if (job.type !== 'command') {
    const { tab, name } = PARTS[job.type];
    return (
      <Empty title={`The files are with the ${name}`}>
        <Anchor component={Link} href={`/jobs/${encodeURIComponent(job.id)}/${tab}`}>
          Choose one of the {name}
        </Anchor>
      </Empty>
    );
  }
  const removed = job.removed?.[0];
  if (removed) {
    return (
      <Empty title="The files have been removed">
        <Text>The site keeps logs and results only for a time; these went on {removed.time.slice(0, 10)}.</Text>
      </Empty>
    );
  }
  return (
    <Empty title="There are no files yet">
      <Group gap={4} justify="center">
        <Text ta="center">
          {hasEnded(job.state)
            ? 'The job has written nothing: what it writes into the folder outputs, and what it prints, comes here.'
            : 'Logs come once the job runs; what it writes into the folder outputs comes when it ends.'}
        </Text>
      </Group>
    </Empty>
  );
}
