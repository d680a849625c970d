// Shows one file of a job by what it is. Its bytes are another's: they are drawn as text, or as a picture of
// a kind that cannot hold scripts.
import { Alert, Anchor, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import type { Schemas } from '../../api/client';
import { CopyCommand } from '../../parts/CopyCommand';
import { bytes as sizeOf } from '../../parts/format';
import { Lines, linesOf } from '../../parts/Lines';
import { Failed, Loading } from '../../parts/Notices';
import { readTable, separatorOf } from './csv';
import { type Beginning, beginningQuery, LIMIT } from './fetchFile';
import { JsonTree } from './JsonTree';
import { fileAddress, imageType, kindOf, textOf } from './kind';
import { TableView } from './TableView';

const MOST_ROWS = 10_000;
const COLORS = /\x1b\[[0-9;]*[A-Za-z]/g; // of terminals, which logs are full of

export function Preview({ job, file }: { job: string; file: Schemas['File'] }) {
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // On a phone it stands below the tree, out of sight.
    const place = top.current!;
    if (place.getBoundingClientRect().top > 0.7 * window.innerHeight) place.scrollIntoView({ block: 'start' });
  }, []);
  return (
    <Stack ref={top} gap="xs" style={{ minWidth: 0, scrollMarginTop: 60 }}>
      <Group justify="space-between" gap="xs">
        <Title order={2} size="h5" style={{ overflowWrap: 'anywhere' }}>
          {file.path}
        </Title>
        <Group gap="sm">
          <Text size="sm">{sizeOf(file.bytes)}</Text>
          <Button component="a" href={fileAddress(job, file.path)} download size="compact-sm" variant="light">
            Download
          </Button>
        </Group>
      </Group>
      {kindOf(file.path) === 'events' ? <Events job={job} /> : <Content job={job} file={file} />}
    </Stack>
  );
}

function Events({ job }: { job: string }) {
  return (
    <Alert color="gray" title="TensorBoard event file">
      <Text size="sm" mb="xs">
        TensorBoard shows it. On your machine, run:
      </Text>
      <CopyCommand command={`tutti tensorboard ${job}`} />
    </Alert>
  );
}

function Content({ job, file }: { job: string; file: Schemas['File'] }) {
  const image = kindOf(file.path) === 'image';
  const tooLarge = image && file.bytes > LIMIT;
  const { data, error } = useQuery({
    ...beginningQuery(job, file.path, file.bytes),
    enabled: !tooLarge,
    placeholderData: (former, query) => (query?.queryKey[2] === file.path ? former : undefined),
  });
  if (tooLarge) return <Unseen>Pictures of more than 2 MiB are not shown here. Download it to see it.</Unseen>;
  if (error && !data) return <Failed error={error} />;
  if (!data) return <Loading />;
  if (data.bytes.length === 0) return <Unseen>The file is empty.</Unseen>;
  return image ? <Picture path={file.path} beginning={data} /> : <Readable file={file} beginning={data} />;
}

function Readable({ file, beginning }: { file: Schemas['File']; beginning: Beginning }) {
  const text = useMemo(() => textOf(beginning.bytes, beginning.whole), [beginning]);
  if (text === null) return <Unseen>The file is binary. Download it to use it.</Unseen>;
  return (
    <>
      {!beginning.whole && (
        <Text size="sm" role="status">
          These are the first 2 MiB of {sizeOf(file.bytes)}. Download the file for all of it.
        </Text>
      )}
      <TextByKind path={file.path} text={text} whole={beginning.whole} />
    </>
  );
}

function TextByKind({ path, text, whole }: { path: string; text: string; whole: boolean }) {
  const kind = kindOf(path);
  const json = useMemo(() => (kind === 'json' && whole ? parsed(text) : undefined), [kind, text, whole]);
  const table = useMemo(
    () => (kind === 'table' ? readTable(text, separatorOf(path, text), MOST_ROWS + 1) : undefined),
    [kind, path, text],
  );
  const lines = useMemo(() => linesOf(text.replace(COLORS, '')), [text]);
  if (json !== undefined) return <JsonTree value={json} />;
  if (table) {
    return (
      <>
        {table.more && <Text size="sm">These are the first {MOST_ROWS.toLocaleString('en')} rows.</Text>}
        <TableView rows={table.rows} label={`Rows of ${path}`} />
      </>
    );
  }
  return <Lines lines={lines} label={`Text of ${path}`} />;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // it is shown as text
  }
}

function Picture({ path, beginning }: { path: string; beginning: Beginning }) {
  const [url, setUrl] = useState<string>();
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([beginning.bytes], { type: imageType(path) }));
    setUrl(made);
    setBroken(false);
    return () => URL.revokeObjectURL(made);
  }, [path, beginning]);
  if (broken) return <Unseen>The file is no picture that this browser knows. Download it to use it.</Unseen>;
  if (!url) return null;
  return (
    <Anchor href={url} target="_blank" rel="noreferrer" w="fit-content" maw="100%" title="Open in a tab of its own">
      <img
        src={url}
        alt={path}
        onError={() => setBroken(true)}
        style={{ maxWidth: '100%', maxHeight: '65vh', minWidth: 96, objectFit: 'contain', imageRendering: 'auto' }}
      />
    </Anchor>
  );
}

function Unseen({ children }: { children: ReactNode }) {
  return (
    <Text py="lg" ta="center">
      {children}
    </Text>
  );
}
