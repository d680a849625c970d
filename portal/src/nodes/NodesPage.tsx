// The nodes of all computes: what runs where, what is free, what waits for it, and what serves files to them.
import { Affix, Alert, Button, Chip, Group, Notification, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { useSearchParams } from 'wouter';
import type { Node } from '../api/client';
import { nodesQuery } from '../api/queries';
import { Empty, Failed, Loading } from '../parts/Notices';
import { usePageTitle } from '../parts/usePageTitle';
import { FileServers } from './FileServers';
import { type Act, NodeDialog } from './NodeDialog';
import { NodeList } from './NodeList';
import './nodes.css';
import { Queue } from './Queue';
import { useUse } from './useUse';

const NO_NODES: Node[] = [];

function grouped(nodes: Node[], key: (node: Node) => string): Map<string, Node[]> {
  const groups = new Map<string, Node[]>();
  for (const node of nodes) groups.set(key(node), [...(groups.get(key(node)) ?? []), node]);
  return groups;
}

export default function NodesPage() {
  usePageTitle('Nodes');
  const { data, error } = useQuery(nodesQuery);
  const uses = useUse(data?.nodes ?? NO_NODES);
  const narrow = useMediaQuery('(max-width: 62em)') ?? false;
  const [query, setQuery] = useSearchParams();
  const [act, setAct] = useState<Act | null>(null);
  const [told, setTold] = useState<string | null>(null);
  const close = useCallback(() => setAct(null), []);
  if (error && !data) return <Failed error={error} />;
  if (!data) return <Loading />;

  const state = query.get('state') ?? '';
  const find = query.get('find') ?? '';
  const say = (name: string, value: string) =>
    setQuery((before) => {
      if (value) before.set(name, value);
      else before.delete(name);
      return before;
    }, { replace: true });
  const shown = data.nodes.filter(
    (node) => (!state || node.state === state) && `${node.name} ${node.jobs.join(' ')}`.includes(find),
  );
  const computes = grouped(shown, (node) => node.compute);
  const done = (sentence: string) => (setTold(sentence), setAct(null));
  return (
    <Stack gap="lg">
      <Title order={1} size="h3">
        Nodes
      </Title>
      {data.warnings.map((warning) => (
        <Alert key={warning} color="yellow">
          {warning}
        </Alert>
      ))}
      <Stack gap="xs">
        <Group>
          <States nodes={data.nodes} state={state} choose={(one) => say('state', one)} />
          <TextInput
            aria-label="Find a node or a job"
            placeholder="Find a node or a job"
            value={find}
            onChange={(event) => say('find', event.currentTarget.value)}
          />
        </Group>
        <Legend />
      </Stack>
      {data.nodes.length === 0 && (
        <Empty title="There are no nodes">
          <Text>A site.yml names computes; without one this machine is the only node.</Text>
        </Empty>
      )}
      {data.nodes.length > 0 && shown.length === 0 && (
        <Empty title="No node is like that">
          <Button variant="default" onClick={() => setQuery({})}>
            Show all {data.nodes.length}
          </Button>
        </Empty>
      )}
      {[...computes].map(([compute, nodes]) => (
        <section key={compute} aria-label={`Compute ${compute}`}>
          <Title order={2} size="h4" mb="xs">
            {compute === 'local' ? 'local: this machine' : compute}{' '}
            <Text span c="dimmed">
              {nodes.length === 1 ? '1 node' : `${nodes.length} nodes`}
            </Text>
          </Title>
          <NodeList nodes={nodes} uses={uses} narrow={narrow} act={setAct} />
        </section>
      ))}
      <section aria-labelledby="queue">
        <Title order={2} size="h4" mb={4} id="queue">
          Queue
        </Title>
        <Queue />
      </section>
      <section aria-labelledby="file-servers">
        <Title order={2} size="h4" mb="xs" id="file-servers">
          File servers
        </Title>
        <FileServers servers={data.file_servers} />
      </section>
      {act && <NodeDialog act={act} close={close} done={done} />}
      <Affix position={{ bottom: 16, right: 16 }}>
        <div role="status">
          {told && (
            <Notification color="green" onClose={() => setTold(null)} withBorder
              closeButtonProps={{ 'aria-label': 'Close' }}>
              {told}
            </Notification>
          )}
        </div>
      </Affix>
    </Stack>
  );
}

interface StatesProps {
  nodes: Node[];
  state: string;
  choose(state: string): void;
}

/** How many nodes are in each state; one that is chosen shows only those. */
function States({ nodes, state, choose }: StatesProps) {
  const counts = grouped(nodes, (node) => node.state);
  if (state && !counts.has(state)) counts.set(state, []);
  return (
    <Chip.Group value={state} onChange={choose}>
      <Group gap={6} role="group" aria-label="State">
        <Chip value="" size="xs" variant="light">
          all {nodes.length}
        </Chip>
        {[...counts].sort().map(([name, of]) => (
          <Chip key={name} value={name} size="xs" variant="light">
            {name} {of.length}
          </Chip>
        ))}
      </Group>
    </Chip.Group>
  );
}

function Legend() {
  return (
    <Text size="xs" c="dimmed">
      <span className="meter-key" style={{ background: 'var(--mantine-color-default-border)' }} /> total{' '}
      <span className="meter-key meter-allocated" style={{ position: 'static' }} /> allocated to jobs{' '}
      <span className="meter-key meter-now" style={{ position: 'static' }} /> used by them now; ~ is more than 10 s old
      or lacks a job
    </Text>
  );
}
