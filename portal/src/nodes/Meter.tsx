// A bar: how much of a node is allocated to jobs, and inside it how much they use now, with the numbers above it.
import { Group, Text } from '@mantine/core';

export interface Amounts {
  total: number;
  /** Null: it is not told, as of nodes of Slurm's. */
  allocated: number | null;
  now: number | null;
  doubtful?: boolean;
}

interface Props extends Amounts {
  /** What is measured: "Cores". */
  label: string;
  write(value: number): string;
  /** Whether the label is written above the bar; in a table the column says it. */
  named?: boolean;
}

export function Meter({ label, total, allocated, now, doubtful, write, named }: Props) {
  if (total === 0) return <Text size="xs" c="dimmed">{named ? `${label}: none` : 'none'}</Text>;
  const part = (value: number) => `${Math.min(100, (100 * value) / total)}%`;
  const told = allocated == null ? write(total) : `${write(allocated)} of ${write(total)} allocated`;
  const used = now == null ? null : `${doubtful ? '~' : ''}${write(now)} used`;
  return (
    <div className="meter">
      <Group gap={6} justify="space-between" wrap="nowrap">
        <Text size="xs" className="one-line">
          {named && `${label}: `}
          {told}
        </Text>
        {used && <Text size="xs" fw={600} className="one-line">{used}</Text>}
      </Group>
      <div
        className="meter-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={allocated ?? now ?? 0}
        aria-valuetext={used ? `${told}, ${used}` : told}
      >
        {allocated != null && <div className="meter-allocated" style={{ width: part(allocated) }} />}
        {now != null && <div className="meter-now" style={{ width: part(now) }} />}
      </div>
    </div>
  );
}
