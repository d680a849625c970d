import { Title } from '@mantine/core';

export default function NodesPage() {
  return <Title order={1}>Nodes</Title>;
}
