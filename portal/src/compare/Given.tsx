// What the jobs were given, what differs first.
import { Button, Group, Mark, Switch, Text, Title } from '@mantine/core';
import { useMemo } from 'react';
import { Loading } from '../parts/Notices';
import { useView } from '../parts/useView';
import { differences, pieces, type Row } from './differences';
import { SideBySide } from './SideBySide';
import type { Compared } from './useCompared';

const FIRST_ROWS = 10; // The curves below stay near.

export function GivenTable({ compared }: { compared: readonly Compared[] }) {
  const [view, setView] = useView();
  const onlyDiffering = view.get('rows') !== 'all';
  const known = useMemo(() => compared.filter(({ given }) => given !== null), [compared]);
  const rows = useMemo(() => differences(known.map(({ given }) => given!)), [known]);
  const wanted = onlyDiffering && known.length > 1 ? rows.filter(({ differs }) => differs) : rows;
  const unfolded = view.has('unfolded') || wanted.length <= FIRST_ROWS + 1; // to fold one row saves nothing
  const shown = unfolded ? wanted : wanted.slice(0, FIRST_ROWS);
  const awaited = compared.some(({ given, error }) => !given && !error);
  return (
    <section aria-label="What they were given">
      <Group mb="xs">
        <Title order={2} size="h5">
          What they were given
        </Title>
        {known.length > 1 && (
          <Switch
            size="sm"
            label="Only differing rows"
            checked={onlyDiffering}
            onChange={(event) => setView({ rows: event.currentTarget.checked ? null : 'all' })}
          />
        )}
      </Group>
      {known.length === 0 && awaited && <Loading />}
      {shown.length === 0 && !awaited && <Text c="dimmed">They were given the same.</Text>}
      {shown.length > 0 && (
        <SideBySide
          title="What they were given"
          what="Parameter"
          compared={known}
          rows={shown.map((row) => ({
            name: row.name,
            cells: row.values.map((_, i) => <Value key={i} row={row} at={i} />),
          }))}
        />
      )}
      {wanted.length > FIRST_ROWS + 1 && (
        <Button
          size="compact-sm"
          variant="default"
          mt="xs"
          aria-expanded={unfolded}
          onClick={() => setView({ unfolded: unfolded ? null : 1 })}
        >
          {unfolded ? `Show the first ${FIRST_ROWS} rows` : `Show all ${wanted.length} rows`}
        </Button>
      )}
    </section>
  );
}

function Value({ row: { name, values, differs }, at }: { row: Row; at: number }) {
  const value = values[at];
  if (value === undefined) return <Text c="dimmed">–</Text>;
  if (!differs || name !== 'command') return <Text inherit fw={differs ? 600 : 400}>{value}</Text>;
  return (
    <Text inherit className="mono" fz="xs" style={{ whiteSpace: 'pre-wrap' }}>
      {pieces(value, values).map((piece, i) => (piece.differs ? <Mark key={i}>{piece.text}</Mark> : piece.text))}
    </Text>
  );
}
