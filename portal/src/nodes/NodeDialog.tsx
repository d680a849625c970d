// What can be done with a node: look at it now, keep jobs from it, let them onto it again.
import { Alert, Badge, Button, Group, Loader, Modal, Stack, Table, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { answer, type Node, type Schemas, service } from '../api/client';
import { nodesQuery, queries } from '../api/queries';
import { Failed } from '../parts/Notices';

export interface Act {
  kind: 'check' | 'cordon' | 'uncordon';
  node: Node;
}

interface Props {
  act: Act;
  close(): void;
  /** Called with what was done, in a sentence. */
  done(told: string): void;
}

const TITLES = { check: 'Check', cordon: 'Cordon', uncordon: 'Uncordon' };

export function NodeDialog({ act, close, done }: Props) {
  const Body = { check: CheckNode, cordon: CordonNode, uncordon: UncordonNode }[act.kind];
  return (
    <Modal opened onClose={close} title={`${TITLES[act.kind]} ${act.node.name}`} size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}>
      <Body node={act.node} close={close} done={done} />
    </Modal>
  );
}

type BodyProps = Omit<Props, 'act'> & { node: Node };

const at = (node: Node) => ({ params: { path: { compute: node.compute, node: node.name } } });
const again = () => queries.invalidateQueries({ queryKey: nodesQuery.queryKey });

function CheckNode({ node, close }: BodyProps) {
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => answer(service.POST('/v1/nodes/{compute}/{node}/check', at(node))),
    onSettled: again,
  });
  useEffect(() => mutate(), [mutate]);
  const failed = data?.checks.some((check) => check.outcome === 'ill');
  return (
    <Stack aria-live="polite">
      {isPending && (
        <Group>
          <Loader size="sm" />
          <Text>Looks at its disk, memory, GPUs and links. This takes as long as its disk does.</Text>
        </Group>
      )}
      {error && <Failed error={error} />}
      {data && (
        <>
          <Alert color={failed ? 'red' : 'green'}>
            {failed
              ? `${node.name} failed its check and gets no jobs until it passes.`
              : `Nothing is wrong with ${node.name}.`}
          </Alert>
          <Checks checks={data.checks} />
        </>
      )}
      <Group justify="flex-end">
        <Button variant="default" loading={isPending} onClick={() => mutate()}>
          Check again
        </Button>
        <Button onClick={close}>Close</Button>
      </Group>
    </Stack>
  );
}

const OUTCOMES = {
  ok: { word: 'ok', color: 'green' },
  ill: { word: 'failed', color: 'red' },
  unknown: { word: 'unknown', color: 'gray' },
};

function Checks({ checks }: { checks: Schemas['NodeCheck'][] }) {
  return (
    <Table aria-label="What was found">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Looked at</Table.Th>
          <Table.Th>Found</Table.Th>
          <Table.Th>Detail</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {checks.map((check, index) => (
          <Table.Tr key={index}>
            <Table.Td>{check.name}</Table.Td>
            <Table.Td>
              <Badge color={OUTCOMES[check.outcome].color} variant="light" radius="sm" tt="none" autoContrast>
                {OUTCOMES[check.outcome].word}
              </Badge>
            </Table.Td>
            <Table.Td style={{ overflowWrap: 'anywhere' }}>{check.detail}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

const LONGEST = 500; // bytes

function CordonNode({ node, close, done }: BodyProps) {
  const [reason, setReason] = useState('');
  const said = reason.trim();
  const tooLong = new TextEncoder().encode(said).length > LONGEST;
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => answer(service.PUT('/v1/nodes/{compute}/{node}/cordon', { ...at(node), body: { reason: said } })),
    onSuccess: () => done(`No job starts on ${node.name} any more.`),
    onSettled: again,
  });
  return (
    <form onSubmit={(event) => (event.preventDefault(), mutate())}>
      <Stack>
        <Text>No job starts on it, also after a restart of the service. What runs there goes on.</Text>
        <TextInput
          label="Why"
          description="Shown to everyone who looks at the nodes, and to jobs that wait for this one."
          placeholder="ECC errors on its GPU"
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          error={tooLong && `at most ${LONGEST} bytes`}
          required
          data-autofocus
        />
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Leave it
          </Button>
          <Button type="submit" loading={isPending} disabled={said === '' || tooLong}>
            Cordon {node.name}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function UncordonNode({ node, close, done }: BodyProps) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => answer(service.DELETE('/v1/nodes/{compute}/{node}/cordon', at(node))),
    onSuccess: () => done(`Jobs start on ${node.name} again.`),
    onSettled: again,
  });
  return (
    <Stack>
      {node.reason && <Text style={{ overflowWrap: 'anywhere' }}>It was cordoned for: {node.reason}</Text>}
      <Text>
        {node.cordoned_by === 'check'
          ? 'This accepts what the check has found: it cordons the node again only once it has passed.'
          : 'Jobs start on it again, at once if some wait for it.'}
      </Text>
      {error && <Failed error={error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={close}>
          Leave it
        </Button>
        <Button loading={isPending} onClick={() => mutate()} data-autofocus>
          Uncordon {node.name}
        </Button>
      </Group>
    </Stack>
  );
}
