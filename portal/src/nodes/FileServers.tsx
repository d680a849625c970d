// The file servers of the service's machine: what they serve, how full they are, and how a node mounts them.
import { Card, Code, CopyButton, Button, Group, Progress, SimpleGrid, Stack, Text } from '@mantine/core';
import { ago, bytes } from '../parts/format';
import { StateBadge } from '../parts/StateBadge';
import { type FileServer, mountCommand } from './fileServer';

export function FileServers({ servers }: { servers: FileServer[] }) {
  if (servers.length === 0) {
    return (
      <Text c="dimmed">
        There is none. <Code>tutti file-server create --file server.yml</Code> serves a folder of this machine to all
        nodes.
      </Text>
    );
  }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      {servers.map((server) => (
        <Server key={server.name} server={server} />
      ))}
    </SimpleGrid>
  );
}

function Server({ server }: { server: FileServer }) {
  const command = mountCommand(server);
  return (
    <Card withBorder component="article" aria-label={server.name}>
      <Stack gap="xs">
        <Group justify="space-between">
          <Text fw={600}>{server.name}</Text>
          <StateBadge state={server.state} />
        </Group>
        {server.reason && <Text size="sm" style={{ overflowWrap: 'anywhere' }}>{server.reason}</Text>}
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          Folder <span className="mono">{server.folder}</span>,{' '}
          {server.access === 'read_only' ? 'read only' : 'can be written to'}, at{' '}
          <span className="mono">
            {server.address}:{server.port}
          </span>
        </Text>
        {server.fill && <Fill fill={server.fill} />}
        {!server.fill && <Text size="sm" c="dimmed">It was never filled from a store.</Text>}
        <Text size="sm">A node mounts it by</Text>
        <Group gap="xs" wrap="nowrap">
          <Code block style={{ flex: 1, minWidth: 0 }} tabIndex={0} aria-label="The command">
            {command}
          </Code>
          <CopyButton value={command}>
            {({ copied, copy }) => (
              <Button size="compact-sm" variant="default" onClick={copy} aria-live="polite">
                {copied ? 'Copied' : 'Copy'}
              </Button>
            )}
          </CopyButton>
        </Group>
      </Stack>
    </Card>
  );
}

function Fill({ fill }: { fill: NonNullable<FileServer['fill']> }) {
  const part = fill.of_bytes > 0 ? (100 * fill.bytes) / fill.of_bytes : 100;
  return (
    <div>
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {fill.state} from {fill.from}: {fill.files} of {fill.of_files} files, {bytes(fill.bytes)} of{' '}
        {bytes(fill.of_bytes)}, {ago(fill.updated)}
      </Text>
      {fill.reason && <Text size="sm">{fill.reason}</Text>}
      {fill.state !== 'filled' && <Progress value={part} aria-label="Filled" mt={4} />}
    </div>
  );
}
