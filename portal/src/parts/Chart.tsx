// A chart of curves over steps or time: drawn by uplot, with a legend of the page's own, and usable by keys.
import { Paper, SimpleGrid, Text, useComputedColorScheme, VisuallyHidden } from '@mantine/core';
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useId, useMemo, useRef, useState } from 'react';
import './chart.css';
import type { ChartGroup } from './chartGroup';
import { ChartLegend, toggled } from './ChartLegend';
import { type ChartSeries, resolved, summaryOf, valueAt } from './chartSeries';
import { nearest } from './points';
import { type Unit, writtenX, type XUnit } from './units';
import { usePlot } from './usePlot';

interface ChartProps {
  title: string;
  /** Beside the title: what can be done with this chart. */
  aside?: ReactNode;
  series: readonly ChartSeries[];
  unit?: Unit;
  xUnit: XUnit;
  log?: boolean;
  /** The charts that share their x with this one. */
  group: ChartGroup;
  height?: number;
  /** Which series are hidden, if the page decides it. */
  hidden?: ReadonlySet<string>;
  onHidden?(hidden: ReadonlySet<string>): void;
  /** Is told whether it is in the window or near it. */
  onNear?(near: boolean): void;
}

const NOTHING: ReadonlySet<string> = new Set();
const NEAR = '600px'; // charts that are further from the window are not drawn

/** Charts beside each other, as many as there is room for. */
export function ChartGrid({ children }: { children: ReactNode }) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
      {children}
    </SimpleGrid>
  );
}

export function Chart(props: ChartProps) {
  const { title, aside, series, unit = 'number', xUnit, group, height = 190 } = props;
  const scheme = useComputedColorScheme('light');
  const [own, setOwn] = useState(NOTHING);
  const hidden = props.hidden ?? own;
  const onHidden = props.onHidden ?? setOwn;
  const place = useRef<HTMLDivElement>(null);
  const near = useNear(place, props.onNear);
  const at = useCrosshair(group, near);
  const id = useId();
  // A logarithm of what is nowhere above zero would show nothing.
  const hasPositive = useMemo(() => series.some(({ points }) => points.y.some((value) => value > 0)), [series]);
  const leftOut = useMemo(() => series.some(({ points }) => points.y.some((value) => value <= 0)), [series]);
  const log = Boolean(props.log) && hasPositive;
  const summary = useMemo(() => (near ? summaryOf(series, unit, xUnit) : ''), [near, series, unit, xUnit]);
  usePlot(place, { series, hidden, unit, xUnit, log, group, height, scheme, near });

  return (
    <Paper component="figure" withBorder p="xs" className="chart" aria-labelledby={`${id}-title`}>
      <div style={{ display: 'flex', alignItems: 'baseline', gap: 8 }}>
        <Text component="figcaption" id={`${id}-title`} fw={600} fz="sm" className="one-line" title={title} flex={1}>
          {title}
        </Text>
        {props.log && leftOut && (
          <Text span fz="xs" c="dimmed">
            {log ? 'only what is above zero' : 'linear: nothing is above zero'}
          </Text>
        )}
        {aside}
      </div>
      <div
        ref={place}
        className="chart-plot"
        role="img"
        tabIndex={0}
        aria-label={`Chart of ${title}${log ? ', logarithmic' : ''}`}
        aria-describedby={`${id}-summary`}
        aria-keyshortcuts="ArrowLeft ArrowRight Shift+ArrowLeft Shift+ArrowRight + - 0"
        style={{ height }}
        onKeyDown={(event) => press(event, id, group, series, hidden)}
        onBlur={() => group.crosshair?.by === id && group.setCrosshair(null)}
      />
      <VisuallyHidden id={`${id}-summary`}>
        {summary} Arrow keys move the crosshair, plus and minus zoom, with Shift arrow
        keys move the visible part, zero shows all.
      </VisuallyHidden>
      <VisuallyHidden aria-live="polite">
        {at !== null && group.crosshair?.by === id && spoken(series, hidden, at, props)}
      </VisuallyHidden>
      <ChartLegend
        title={title}
        series={series}
        hidden={hidden}
        onToggle={(key, only) => onHidden(toggled(series, hidden, key, only))}
        at={at}
        visible={group.visible}
        unit={unit}
        xUnit={xUnit}
        scheme={scheme}
      />
    </Paper>
  );
}

/** Whether the element is in the window or near it. */
function useNear(place: RefObject<HTMLElement | null>, onNear?: (near: boolean) => void): boolean {
  const [near, setNear] = useState(false);
  useEffect(() => {
    const watcher = new IntersectionObserver((seen) => setNear(seen.at(-1)!.isIntersecting), { rootMargin: NEAR });
    watcher.observe(place.current!);
    return () => watcher.disconnect();
  }, [place]);
  useEffect(() => onNear?.(near), [near, onNear]);
  return near;
}

/** Where the crosshair of the group is, at most once a frame. */
function useCrosshair(group: ChartGroup, near: boolean): number | null {
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    if (!near) return undefined;
    let frame = 0;
    const unwatch = group.watch((what) => {
      if (what !== 'crosshair' || frame) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        setAt(group.crosshair?.x ?? null);
      });
    });
    return () => (unwatch(), cancelAnimationFrame(frame));
  }, [group, near]);
  return at;
}

function press(
  event: KeyboardEvent,
  id: string,
  group: ChartGroup,
  series: readonly ChartSeries[],
  hidden: ReadonlySet<string>,
): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = group.crosshair?.x;
  const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (side && event.shiftKey) group.pan(side / 5);
  else if (side) stepTo(side, id, group, series.find((one) => !hidden.has(one.key)));
  else if (event.key === '+' || event.key === '=') group.zoom(0.5, at);
  else if (event.key === '-') group.zoom(2, at);
  else if (event.key === '0' || event.key === 'Escape') group.setRange(null);
  else return;
  event.preventDefault();
}

const FINEST = 400; // a step is at least this part of what is visible

/** Moves the crosshair to the next point of a curve that one can tell apart, or the one before. */
function stepTo(side: number, id: string, group: ChartGroup, series: ChartSeries | undefined): void {
  if (!series) return;
  const [from, to] = group.visible;
  const { points } = resolved(series, group.visible);
  const now = group.crosshair;
  const step = (side * (to - from)) / FINEST;
  let next = now ? nearest(points, now.x) + side : nearest(points, side > 0 ? from : to);
  if (now && Math.abs(points.x[next]! - now.x) < Math.abs(step)) next = nearest(points, now.x + step);
  const x = points.x[next];
  if (x !== undefined && x >= from && x <= to) group.setCrosshair({ x, by: id });
}

function spoken(
  series: readonly ChartSeries[],
  hidden: ReadonlySet<string>,
  at: number,
  { group, unit = 'number', xUnit }: ChartProps,
): string {
  const shown = series.filter((one) => !hidden.has(one.key));
  const values = shown.map((one) => `${one.name} ${valueAt(one, at, group.visible, unit).value}`);
  return `${writtenX(xUnit, at)}: ${values.join(', ')}`;
}
