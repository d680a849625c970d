// What is shown of a node, in the same words in a row of the table and on a phone's card.
import { Anchor, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Node } from '../api/client';
import { bytes, number } from '../parts/format';
import { Meter } from './Meter';
import type { Use } from './use';

const BY: Record<string, string> = {
  user: 'by a user', check: 'by a check of the node', jobs: 'since jobs failed there',
};
const SHOWN_JOBS = 4;

/** Why it takes no jobs, and who said so; null where it does. */
export function whyNot(node: Node): string | null {
  const by = node.cordoned_by && `Cordoned ${BY[node.cordoned_by] ?? `by ${node.cordoned_by}`}`;
  return [by, node.reason].filter(Boolean).join(': ') || null;
}

export function NodeJobs({ node }: { node: Node }) {
  const [all, setAll] = useState(false);
  if (node.jobs.length === 0) return <Text size="xs" c="dimmed">no job</Text>;
  return (
    <Group gap={2} style={{ flexDirection: 'column', alignItems: 'flex-start' }}>
      {node.jobs.slice(0, all ? undefined : SHOWN_JOBS).map((job) => (
        <Anchor
          key={job}
          component={Link}
          href={`/jobs/${encodeURIComponent(job)}`}
          size="sm"
          maw={210}
          className="one-line"
        >
          {job}
        </Anchor>
      ))}
      {!all && node.jobs.length > SHOWN_JOBS && (
        <Anchor component="button" size="xs" onClick={() => setAll(true)}>
          and {node.jobs.length - SHOWN_JOBS} more
        </Anchor>
      )}
    </Group>
  );
}

/** What of it is allocated to jobs; null where Slurm allocates and does not tell. */
function allocatedOf(node: Node): Node['used'] | null {
  const { cores, memory_bytes, gpus } = node.used;
  return node.compute !== 'local' && cores === 0 && memory_bytes === 0 && gpus === 0 ? null : node.used;
}

interface OfUse {
  node: Node;
  use: Use | undefined;
  named?: boolean;
}

export function Cores({ node, use, named }: OfUse) {
  return (
    <Meter
      label="Cores"
      total={node.cores.length}
      allocated={allocatedOf(node)?.cores ?? null}
      now={use?.cores ?? null}
      doubtful={use?.doubtful}
      write={(value) => (Number.isInteger(value) ? String(value) : value.toFixed(2))}
      named={named}
    />
  );
}

export function Memory({ node, use, named }: OfUse) {
  return (
    <Meter
      label="Memory"
      total={node.memory_bytes}
      allocated={allocatedOf(node)?.memory_bytes ?? null}
      now={use?.memory ?? null}
      doubtful={use?.doubtful}
      write={bytes}
      named={named}
    />
  );
}

/** Use is how many are busy, of those of jobs whose GPUs tell it. */
export function Gpus({ node, use, named }: OfUse) {
  return (
    <Meter
      label="GPUs"
      total={node.gpus.length}
      allocated={allocatedOf(node)?.gpus ?? null}
      now={use?.gpus ?? null}
      doubtful={use?.doubtful}
      write={number}
      named={named}
    />
  );
}

export function Traffic({ use }: { use: Use | undefined }) {
  if (!use) return <Text size="xs" c="dimmed">–</Text>;
  const line = (name: string, value: number | null) =>
    value != null && (
      <Text key={name} size="xs" style={{ whiteSpace: 'nowrap' }}>
        {name} {bytes(Math.round(value))}/s
      </Text>
    );
  return (
    <div style={{ display: 'grid', gridTemplateColumns: 'auto auto', columnGap: 10, justifyContent: 'start' }}>
      {line('in', use.received)}
      {line('reads', use.read)}
      {line('out', use.sent)}
      {line('writes', use.written)}
    </div>
  );
}
