// What can be done with output: choose, search, arrange, take home.
import {
  ActionIcon, Anchor, Button, Checkbox, Divider, Group, NativeSelect, Popover, Stack, Text, TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { KeyboardEvent, Ref } from 'react';
import type { Job } from '../../api/client';
import { filesQuery } from '../../api/queries';
import { bytes } from '../../parts/format';
import { fileAddress } from '../files/kind';
import type { Choice } from './lineView';
import type { RowLooks } from './LogRow';

interface Props {
  job: Job;
  ranks: number;
  choice: Choice;
  onChoice(choice: Choice): void;
  find: string;
  onFind(text: string): void;
  only: boolean;
  onOnly(only: boolean): void;
  /** What the search has found in what is loaded, and whether that is all of the log. */
  found: { lines: number; at: number | null; isWhole: boolean } | null;
  /** Loads the rest of the log; null: it cannot. */
  onAll: (() => void) | null;
  onStep(by: 1 | -1): void;
  onCause: (() => void) | null;
  looks: RowLooks;
  onLooks(looks: RowLooks): void;
  onSave(): void;
  searchField: Ref<HTMLInputElement>;
}

export function LogBar(props: Props) {
  const { job, choice, onChoice, find, onFind, found, onStep, onCause } = props;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') onStep(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') onFind('');
    else return;
    event.preventDefault();
  };
  const ranks = Array.from({ length: Math.max(job.world_size, props.ranks) }, (_, rank) => String(rank));
  return (
    <Group gap="xs">
      <NativeSelect
        size="xs"
        aria-label="Ranks"
        value={choice.rank === null ? '' : String(choice.rank)}
        onChange={({ currentTarget: { value } }) => onChoice({ ...choice, rank: value ? Number(value) : null })}
        data={[{ value: '', label: 'All ranks' }, ...ranks.map((rank) => ({ value: rank, label: `Rank ${rank}` }))]}
      />
      <NativeSelect
        size="xs"
        aria-label="Streams"
        value={choice.source ?? ''}
        onChange={({ currentTarget: { value } }) =>
          onChoice({ ...choice, source: (value || null) as Choice['source'] })
        }
        data={[
          { value: '', label: 'stdout and stderr' }, { value: 'stdout', label: 'stdout' },
          { value: 'stderr', label: 'stderr' }, { value: 'mpirun', label: 'mpirun' },
        ]}
      />
      <TextInput
        ref={props.searchField}
        size="xs"
        type="search"
        w={{ base: '100%', xs: 220 }}
        placeholder="Search (/)"
        aria-label="Search the output"
        value={find}
        onChange={(event) => onFind(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {found && (
        <>
          <Text size="xs" role="status">
            {found.at === null ? '' : `${(found.at + 1).toLocaleString('en')} of `}
            {found.lines.toLocaleString('en')} {found.lines === 1 ? 'line' : 'lines'}
            {!found.isWhole && ' of those loaded'}
          </Text>
          {!found.isWhole && props.onAll && (
            <Button size="compact-xs" variant="default" onClick={props.onAll}>
              Search all: load the rest
            </Button>
          )}
          <ActionIcon variant="default" size="md" aria-label="Match before" onClick={() => onStep(-1)}>
            ↑
          </ActionIcon>
          <ActionIcon variant="default" size="md" aria-label="Next match" onClick={() => onStep(1)}>
            ↓
          </ActionIcon>
          <Checkbox
            size="xs"
            label="Only these lines"
            checked={props.only}
            onChange={(event) => props.onOnly(event.currentTarget.checked)}
          />
        </>
      )}
      <Group gap="xs" ml="auto">
        {onCause && (
          <Button size="xs" color="red" variant="light" onClick={onCause}>
            Jump to the cause
          </Button>
        )}
        <Arrangement looks={props.looks} onLooks={props.onLooks} />
        <Downloads job={job} rank={choice.rank} onSave={props.onSave} />
      </Group>
    </Group>
  );
}

const LOOKS = [
  ['times', 'Times'],
  ['wrap', 'Wrap long lines'],
  ['rankColors', 'Colours of ranks'],
] as const;

function Arrangement({ looks, onLooks }: { looks: RowLooks; onLooks(looks: RowLooks): void }) {
  return (
    <Popover position="bottom-end" trapFocus returnFocus>
      <Popover.Target>
        <Button size="xs" variant="default">
          View
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="View">
        <Stack gap="xs">
          {LOOKS.map(([name, label]) => (
            <Checkbox
              key={name}
              size="xs"
              label={label}
              checked={looks[name]}
              onChange={(event) => onLooks({ ...looks, [name]: event.currentTarget.checked })}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

const MANY = 200;

function Downloads({ job, rank, onSave }: { job: Job; rank: number | null; onSave(): void }) {
  const { data } = useQuery(filesQuery(job.id));
  const files = (data?.files ?? []).filter(
    ({ path }) => path.startsWith('logs/') && (rank === null || path.startsWith(`logs/rank-${rank}.`)),
  );
  return (
    <Popover position="bottom-end" trapFocus returnFocus>
      <Popover.Target>
        <Button size="xs" variant="default">
          Download
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Download" mah={400} style={{ overflowY: 'auto' }}>
        <Stack gap={4}>
          <Button size="xs" variant="default" onClick={onSave}>
            What is shown, as text
          </Button>
          <Divider my={4} />
          {files.length === 0 && <Text size="sm">No log files are there yet.</Text>}
          {files.slice(0, MANY).map(({ path, bytes: size }) => (
            <Anchor key={path} size="sm" href={fileAddress(job.id, path)} download={`${job.id}-${path.slice(5)}`}>
              {path.slice(5)} <Text span size="xs" c="dimmed">{bytes(size)}</Text>
            </Anchor>
          ))}
          {files.length > MANY && <Text size="sm">Choose a rank to see its files.</Text>}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
