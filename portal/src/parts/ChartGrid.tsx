import { Paper, SimpleGrid, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** Charts beside each other, as many as there is room for, under a heading. */
export function ChartGrid({ title, count, children }: { title?: string; count?: number; children: ReactNode }) {
  return (
    <section aria-label={title}>
      {title && (
        <Title order={2} size="h5" mb="xs">
          {title}
          {count !== undefined && ` (${count})`}
        </Title>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
        {children}
      </SimpleGrid>
    </section>
  );
}

export function ChartCard({ children }: { children: ReactNode }) {
  return (
    <Paper withBorder p="xs" miw={0}>
      {children}
    </Paper>
  );
}
