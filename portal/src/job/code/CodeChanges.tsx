// How a job's code differs from that of another: the files that did, and of one of them its lines.
import { Badge, Grid, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { ServiceError } from '../../api/client';
import { countsOf, diffLines } from '../../parts/diff';
import { Difference } from '../../parts/Difference';
import { FileTree } from '../../parts/FileTree';
import { bytes } from '../../parts/format';
import { Empty, Failed, Loading } from '../../parts/Notices';
import { type Change, changesOf, codeQuery, type JobCode } from './code';

interface Props {
  code: JobCode;
  other: string; // the job that it is compared with, and of it
  folder: string | null;
  path: string | null;
  onPath(path: string): void;
}

const WORDS = {
  added: { color: 'green', label: 'new' },
  removed: { color: 'red', label: 'gone' },
  changed: { color: 'blue', label: 'changed' },
};

export function CodeChanges({ code, other, folder, path, onPath }: Props) {
  const { data, error } = useQuery(codeQuery(other, folder));
  const changes = useMemo(() => (data ? changesOf(data.files, code.files) : []), [data, code]);
  const counts = useMemo(() => new Map(changes.map((change) => [change.path, countsOfChange(change)])), [changes]);
  if (error) return <NoCode error={error} />;
  if (!data) return <Loading />;
  if (changes.length === 0) {
    return (
      <Empty title="The code is the same">
        <Text ta="center">
          {data.snapshot === code.snapshot
            ? `Job ${other} ran exactly this code.`
            : 'Only what is not shown here may differ, such as which files may be executed.'}
        </Text>
      </Empty>
    );
  }
  const chosen = changes.find((change) => change.path === path) ?? changes[0]!;
  const files = changes.map(({ path: of, before, after }) => ({ path: of, bytes: (after ?? before)!.bytes }));
  const total = [...counts.values()].reduce(
    (sum, each) => ({ added: sum.added + each.added, removed: sum.removed + each.removed }),
    { added: 0, removed: 0 },
  );
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Stack gap="xs">
          <FileTree
            files={files}
            chosen={chosen.path}
            onChoose={onPath}
            label="Files that differ"
            unfolded
            height="55vh"
            mark={(of) => <Mark change={changes.find((change) => change.path === of)!} />}
          />
          <Text size="sm">
            {changes.length} {changes.length === 1 ? 'file differs' : 'files differ'}: {total.added} lines new,{' '}
            {total.removed} gone
          </Text>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8 }}>
        <Stack gap="xs">
          <Group gap="xs">
            <Title order={2} size="h5" style={{ overflowWrap: 'anywhere' }}>
              {chosen.path}
            </Title>
            <Mark change={chosen} />
          </Group>
          <Lined change={chosen} />
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

/** Code that is not here, such as that of a job whose snapshot has been removed, is no fault. */
export function NoCode({ error }: { error: Error }) {
  if (!(error instanceof ServiceError && error.status === 404)) return <Failed error={error} />;
  return (
    <Empty title="There is no code to show">
      <Text ta="center">{error.message}</Text>
    </Empty>
  );
}

function countsOfChange({ before, after }: Change) {
  return before?.text === null || after?.text === null
    ? { added: 0, removed: 0 }
    : countsOf(diffLines(before?.text ?? '', after?.text ?? ''));
}

function Mark({ change }: { change: Change }) {
  const { color, label } = WORDS[change.kind];
  return (
    <Badge size="xs" variant="light" color={color} tt="none" flex="none">
      {label}
    </Badge>
  );
}

function Lined({ change }: { change: Change }) {
  const { before, after } = change;
  if (before?.text === null || after?.text === null) {
    return (
      <Text size="sm">
        The file is binary or large: {before ? bytes(before.bytes) : 'not there'} before,{' '}
        {after ? bytes(after.bytes) : 'not there'} now.
      </Text>
    );
  }
  return (
    <Difference
      key={change.path}
      before={before?.text ?? ''}
      after={after?.text ?? ''}
      label={`Changes of ${change.path}`}
    />
  );
}
