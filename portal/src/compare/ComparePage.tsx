import { Title } from '@mantine/core';

export default function ComparePage() {
  return <Title order={1}>Compare</Title>;
}
