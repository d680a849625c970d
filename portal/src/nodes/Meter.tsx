// A bar: how much of a node jobs were given, and inside it how much they use now, with the numbers above it.
import { Group, Text } from '@mantine/core';

export interface Amounts {
  there: number;
  /** Null: it is not told, as of nodes of Slurm's. */
  given: number | null;
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

export function Meter({ label, there, given, now, doubtful, write, named }: Props) {
  if (there === 0) return <Text size="xs" c="dimmed">{named ? `${label}: none` : 'none'}</Text>;
  const part = (value: number) => `${Math.min(100, (100 * value) / there)}%`;
  const told = given == null ? write(there) : `${write(given)} of ${write(there)} given`;
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
        aria-valuemax={there}
        aria-valuenow={given ?? now ?? 0}
        aria-valuetext={used ? `${told}, ${used}` : told}
      >
        {given != null && <div className="meter-given" style={{ width: part(given) }} />}
        {now != null && <div className="meter-now" style={{ width: part(now) }} />}
      </div>
    </div>
  );
}
