import { Badge } from '@mantine/core';

const COLORS: Record<string, string> = {
  Queued: 'gray', NotStarted: 'gray', Waiting: 'gray', Preparing: 'cyan', Provisioning: 'cyan', Starting: 'cyan',
  Running: 'blue', Finalizing: 'indigo', Completed: 'green', Failed: 'red', Canceled: 'orange', Skipped: 'gray',
  idle: 'gray', running: 'blue', cordoned: 'orange', failed: 'red',
};

export function StateBadge({ state }: { state: string }) {
  return (
    <Badge color={COLORS[state] ?? 'gray'} variant="light" size="sm" radius="sm" tt="none" miw={84} autoContrast>
      {state}
    </Badge>
  );
}
