// The files of a job's code, and the text of the one that the address names.
import { Grid, Stack, Text, Title } from '@mantine/core';
import { useMemo } from 'react';
import { FileTree } from '../../parts/FileTree';
import { bytes } from '../../parts/format';
import { Lines, linesOf } from '../../parts/Lines';
import { Empty } from '../../parts/Notices';
import type { CodeFile, JobCode } from './code';

interface Props {
  code: JobCode;
  path: string | null;
  onPath(path: string): void;
}

export function CodeFiles({ code, path, onPath }: Props) {
  const { files, left_out } = code;
  const chosen = files.find((file) => file.path === path) ?? (path ? undefined : mainOf(files));
  if (files.length === 0) return <Empty title="The code has no files" />;
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Stack gap="xs">
          <FileTree
            files={files}
            chosen={chosen?.path ?? null}
            onChoose={onPath}
            label="Files of the code"
            height="55vh"
          />
          <Text size="sm">
            {files.length} {files.length === 1 ? 'file' : 'files'},{' '}
            {bytes(files.reduce((sum, file) => sum + file.bytes, 0))}
            {left_out > 0 && `; ${left_out} more are not listed`}
          </Text>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8 }}>
        {chosen ? <OneFile file={chosen} /> : <Empty title="This file is not there" />}
      </Grid.Col>
    </Grid>
  );
}

/** What one most likely wants to see first: a script at the top. */
function mainOf(files: CodeFile[]): CodeFile | undefined {
  const readable = files.filter((file) => file.text !== null);
  return readable.find((file) => /^[^/]+\.(py|sh)$/.test(file.path)) ?? readable[0] ?? files[0];
}

function OneFile({ file }: { file: CodeFile }) {
  const lines = useMemo(() => linesOf(file.text ?? ''), [file]);
  return (
    <Stack gap="xs">
      <Title order={2} size="h5" style={{ overflowWrap: 'anywhere' }}>
        {file.path}
      </Title>
      {file.text === null ? (
        <Text size="sm">The file is binary or large ({bytes(file.bytes)}), and so not shown here.</Text>
      ) : (
        <Lines lines={lines} label={`Text of ${file.path}`} />
      )}
    </Stack>
  );
}
