import { Alert, Anchor, Center, Loader, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { usePageTitle } from './usePageTitle';

export function Loading() {
  return (
    <Center mih={200} role="status" aria-label="Loading">
      <Loader />
    </Center>
  );
}

/** What went wrong, in the service's words. */
export function Failed({ error }: { error: Error }) {
  return (
    <Alert color="red" role="alert">
      {error.message}
    </Alert>
  );
}

/** What a place shows that has nothing yet: what would be there, and how it comes. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Stack align="center" py={48} gap="xs">
      <Title order={2} size="h4">
        {title}
      </Title>
      {children}
    </Stack>
  );
}

export function Nowhere() {
  usePageTitle('No such page');
  return (
    <Empty title="There is no such page">
      <Text>
        <Anchor component={Link} href="/">
          All jobs
        </Anchor>
      </Text>
    </Empty>
  );
}
