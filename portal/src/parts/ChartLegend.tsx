// What a chart's curves are called and worth, where the crosshair is; curves are hidden and shown here.
import { Group, Text } from '@mantine/core';
import { type ChartSeries, notFiniteText, valueAt } from './chartSeries';
import { type Scheme, strokeOf } from './palette';
import type { Range } from './points';
import { type Unit, writtenX, type XUnit } from './units';

interface LegendProps {
  title: string;
  series: readonly ChartSeries[];
  hidden: ReadonlySet<string>;
  /** Hides or shows one; `only`: shows it alone, or all if it is alone already. */
  onToggle(key: string, only: boolean): void;
  /** Where the crosshair is; null: nowhere, the last values count. */
  at: number | null;
  visible: Range;
  unit: Unit;
  xUnit: XUnit;
  scheme: Scheme;
}

export function ChartLegend({ title, series, hidden, onToggle, at, visible, unit, xUnit, scheme }: LegendProps) {
  const place = at === null ? 'last' : writtenX(xUnit, at);
  const valueOf = (one: ChartSeries) => {
    const { value, raw } = valueAt(one, at, visible, unit);
    const lost = at === null && notFiniteText(one.notFinite);
    return (
      <span className="chart-value">
        {lost && (
          <span className="chart-lost">
            <span aria-hidden>▲ </span>
            {lost}{' '}
          </span>
        )}
        <span>{value}</span>
        {raw !== undefined && <Text span inherit c="dimmed">{` (raw ${raw})`}</Text>}
      </span>
    );
  };
  const [alone] = series;
  if (alone && series.length === 1) {
    return (
      <Group gap="xs" fz={12} px={4} mih={24} wrap="nowrap" justify="space-between">
        <Text span inherit c="dimmed" className="one-line">
          {place}
        </Text>
        {valueOf(alone)}
      </Group>
    );
  }
  return (
    <>
      <Text fz={12} px={4} c="dimmed" className="one-line">
        {place}
      </Text>
      <ul className="chart-legend" aria-label={`Curves of ${title}`} tabIndex={-1}>
        {series.map((one) => (
          <li key={one.key}>
            <button
              type="button"
              aria-pressed={!hidden.has(one.key)}
              title={`${one.name}: hide or show; with Shift, this one alone`}
              onClick={(event) => onToggle(one.key, event.shiftKey)}
            >
              <Swatch color={one.color} scheme={scheme} />
              <span className="chart-name">{one.name}</span>
              {!hidden.has(one.key) && valueOf(one)}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** A piece of the curve with this colour. */
export function Swatch({ color, scheme }: { color: number; scheme: Scheme }) {
  const { color: stroke, dash } = strokeOf(color, scheme);
  return (
    <svg width="22" height="10" aria-hidden="true" style={{ flex: 'none' }}>
      <line x1="1" y1="5" x2="21" y2="5" stroke={stroke} strokeWidth="3" strokeDasharray={dash.join(' ')} />
    </svg>
  );
}

/** What is hidden after a click on `key`. */
export function toggled(
  series: readonly { key: string }[],
  hidden: ReadonlySet<string>,
  key: string,
  only: boolean,
): ReadonlySet<string> {
  const keys = series.map((one) => one.key);
  if (only) {
    const alone = keys.every((other) => hidden.has(other) === (other !== key));
    return alone ? new Set() : new Set(keys.filter((other) => other !== key));
  }
  const next = new Set(hidden);
  if (!next.delete(key)) next.add(key);
  return next;
}
