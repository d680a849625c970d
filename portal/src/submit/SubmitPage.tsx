import { Title } from '@mantine/core';

export default function SubmitPage() {
  return <Title order={1}>Submit</Title>;
}
