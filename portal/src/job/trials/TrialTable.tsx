// The trials in a table that sorts by each of its columns; only the rows that are seen are drawn.
import { Anchor, Checkbox } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useMemo, useRef } from 'react';
import { Link } from 'wouter';
import { duration, number, secondsBetween } from '../../parts/format';
import { StateBadge } from '../../parts/StateBadge';
import { isNumeric } from './scales';
import { inOrder, numberOf, type Order, type Trial } from './trial';

const ROW = 34;

interface Column {
  by: string;
  label: string;
  width: number;
}

interface Props {
  trials: Trial[];
  parameters: string[];
  metric: string;
  order: Order;
  setOrder(order: Order): void;
  picked: ReadonlySet<number>;
  pick(trial: Trial, is: boolean): void;
  best: Trial | null;
  looked: Trial | null;
  look(trial: Trial): void;
}

export function TrialTable(props: Props) {
  const { trials, parameters, metric, order, setOrder, picked, pick, best, looked, look } = props;
  const frame = useRef<HTMLDivElement>(null);
  const { by, down } = order;
  const rows = useMemo(() => inOrder(trials, { by, down }), [trials, by, down]);
  const columns: Column[] = [
    { by: '.number', label: 'Trial', width: 100 },
    { by: '.state', label: 'State', width: 116 },
    { by: '.metric', label: metric, width: 140 },
    ...parameters.map((name) => ({ by: name, label: name, width: 120 })),
    { by: '.ran', label: 'Ran', width: 100 },
  ];
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const width = columns.reduce((sum, column) => sum + column.width, 44);
  return (
    <div className="trials-frame" ref={frame} tabIndex={0} role="group" aria-label="Trials">
      <table className="trials-table" style={{ width: '100%', minWidth: width + 260 }} aria-rowcount={rows.length + 1}>
        <colgroup>
          <col style={{ width: 44 }} />
          {columns.map((column) => (
            <col key={column.by} style={{ width: column.width }} />
          ))}
          <col />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">
              <span title="Chosen to be compared">✓</span>
            </th>
            {columns.map((column) => (
              <Head key={column.by} column={column} order={order} setOrder={setOrder} />
            ))}
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {above > 0 && <tr aria-hidden="true" style={{ height: above }} />}
          {items.map(({ index }) => {
            const trial = rows[index]!;
            return (
              <Row
                key={trial.step}
                trial={trial}
                index={index + 2}
                parameters={parameters}
                picked={picked.has(numberOf(trial))}
                isBest={trial.step === best?.step}
                isLooked={trial.step === looked?.step}
                pick={pick}
                look={look}
              />
            );
          })}
          {below > 0 && <tr aria-hidden="true" style={{ height: below }} />}
        </tbody>
      </table>
    </div>
  );
}

function Head({ column, order, setOrder }: { column: Column; order: Order; setOrder(order: Order): void }) {
  const sorted = order.by === column.by;
  return (
    <th scope="col" aria-sort={sorted ? (order.down ? 'descending' : 'ascending') : 'none'}>
      <button
        type="button"
        className="trials-sort"
        title={column.label}
        onClick={() => setOrder({ by: column.by, down: sorted && !order.down })}
      >
        {column.label} <span aria-hidden="true">{sorted ? (order.down ? '▼' : '▲') : ''}</span>
      </button>
    </th>
  );
}

interface RowProps {
  trial: Trial;
  index: number;
  parameters: string[];
  picked: boolean;
  isBest: boolean;
  isLooked: boolean;
  pick(trial: Trial, is: boolean): void;
  look(trial: Trial): void;
}

const Row = memo(function Row({ trial, index, parameters, picked, isBest, isLooked, pick, look }: RowProps) {
  const seconds = secondsBetween(trial.started, trial.ended);
  return (
    <tr
      aria-rowindex={index}
      data-best={isBest ? '' : undefined}
      data-looked={isLooked ? '' : undefined}
      style={{ height: ROW }}
      onPointerEnter={() => look(trial)}
      onFocus={() => look(trial)}
    >
      <td>
        <Checkbox
          size="xs"
          aria-label={`Choose ${trial.step}`}
          checked={picked}
          disabled={!trial.id}
          onChange={(event) => pick(trial, event.currentTarget.checked)}
        />
      </td>
      <th scope="row" style={{ fontWeight: 'inherit' }}>
        {trial.id ? (
          <Anchor component={Link} href={`/jobs/${encodeURIComponent(trial.id)}`} size="sm" fw="inherit">
            {trial.step}
          </Anchor>
        ) : (
          trial.step
        )}
      </th>
      <td>
        <StateBadge state={trial.state} />
      </td>
      <td>
        {number(trial.metric)}
        {isBest && ' best'}
      </td>
      {parameters.map((name) => (
        <td key={name} title={trial.values[name]}>
          {written(trial.values[name])}
        </td>
      ))}
      <td>{seconds == null ? '–' : duration(seconds)}</td>
      <td title={trial.reason}>{trial.reason}</td>
    </tr>
  );
});

export function written(value: string | undefined): string {
  if (value == null) return '–';
  return isNumeric(value) ? number(Number(value)) : value;
}
