// What a job ran: its code, its job file, its environment, and how they differ from another job's.
import { Alert, Anchor, Group, SegmentedControl, Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Job, Schemas } from '../api/client';
import { submissionQuery } from '../api/queries';
import { Empty, Failed, Loading } from '../parts/Notices';
import { type Changes, useView } from '../parts/useView';
import { AsRead } from './code/AsRead';
import { codeQuery } from './code/code';
import { CodeChanges, NoCode } from './code/CodeChanges';
import { CodeFiles } from './code/CodeFiles';
import { CompareWith } from './code/CompareWith';
import { JobFile } from './code/JobFile';
import { Origin } from './code/Origin';

const SHOWS = [
  { value: 'files', label: 'Files' },
  { value: 'changes', label: 'Changes' },
  { value: 'job-file', label: 'Job file' },
  { value: 'environment', label: 'Environment' },
];

export default function Code({ job }: { job: Job }) {
  const [view, setView] = useView();
  const isChild = job.parent !== null;
  const { data: submission, error } = useQuery({ ...submissionQuery(job.id), enabled: !isChild });
  const set = (changes: Changes) => setView(changes, { push: true });
  if (error) return <Failed error={error} />;
  if (!submission && !isChild) return <Loading />;
  const show = SHOWS.find(({ value }) => value === view.get('show'))?.value ?? 'files';
  const other = view.get('with') ?? submission?.former ?? null;
  const folders = Object.keys(submission?.snapshots ?? {});
  const folder = view.get('folder') ?? (job.type === 'command' ? null : (folders[0] ?? null));
  return (
    <Stack>
      <Origin job={job} />
      <Group align="end">
        <SegmentedControl
          data={SHOWS}
          value={show}
          onChange={(value) => set({ show: value === 'files' ? null : value, path: null })}
          aria-label="What is shown"
          size="xs"
        />
        {folders.length > 1 && (show === 'files' || show === 'changes') && (
          <Select
            label="Code folder"
            data={folders.map((value) => ({ value, label: value.replaceAll('\n', ' + ') }))}
            value={folder}
            onChange={(value) => set({ folder: value, path: null })}
            allowDeselect={false}
            size="sm"
            miw={280}
          />
        )}
      </Group>
      {(show === 'changes' || (show === 'job-file' && submission)) && (
        <CompareWith
          job={job.id}
          former={submission?.former ?? null}
          other={other}
          onOther={(id) => set({ with: id, path: null })}
        />
      )}
      {show === 'job-file' && submission && <JobFile job={job} submission={submission} other={other} />}
      {show === 'environment' && submission && <AsRead job={job} submission={submission} />}
      {(show === 'job-file' || show === 'environment') && !submission && <OfItsParent parent={job.parent!} />}
      {(show === 'files' || show === 'changes') && (
        <OfCode
          job={job}
          submission={submission}
          folder={folder}
          other={show === 'changes' ? other : undefined}
          path={view.get('path')}
          onPath={(path) => set({ path })}
        />
      )}
    </Stack>
  );
}

interface OfCodeProps {
  job: Job;
  submission: Schemas['JobSubmission'] | undefined;
  folder: string | null;
  other: string | null | undefined; // undefined: nothing is compared
  path: string | null;
  onPath(path: string): void;
}

function OfCode({ job, submission, folder, other, path, onPath }: OfCodeProps) {
  const none = job.snapshot === null && Object.keys(submission?.snapshots ?? {}).length === 0;
  const { data, error } = useQuery({ ...codeQuery(job.id, folder), enabled: !none });
  if (none) {
    return (
      <Empty title="The job has no code">
        <Text ta="center">
          Its command uses what is on the nodes. A job file names a folder of code by the key “code”.
        </Text>
      </Empty>
    );
  }
  if (error) return <NoCode error={error} />;
  if (!data) return <Loading />;
  if (other === undefined) return <CodeFiles code={data} path={path} onPath={onPath} />;
  if (other === null) {
    return (
      <Empty title="There is no job to compare with yet">
        <Text ta="center">
          None of the last 500 jobs was of the same script or job file. Choose any other one above.
        </Text>
      </Empty>
    );
  }
  return <CodeChanges key={other} code={data} other={other} folder={folder} path={path} onPath={onPath} />;
}

function OfItsParent({ parent }: { parent: string }) {
  return (
    <Alert color="gray">
      The job is a part of{' '}
      <Anchor
        component={Link}
        href={`/jobs/${encodeURIComponent(parent)}/code?show=job-file`}
        inherit
        underline="always"
        c="inherit"
      >
        {parent}
      </Anchor>
      , whose job file says what it runs.
    </Alert>
  );
}
