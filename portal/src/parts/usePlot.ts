// Keeps a uplot in the page. The data stay outside of it: it is given the resolution that the visible part has.
import { type RefObject, useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { ChartGroup } from './chartGroup';
import { optionsOf } from './chartOptions';
import { type ChartSeries, drawn, marksOf, partsOf } from './chartSeries';
import type { Scheme } from './palette';
import type { Unit, XUnit } from './units';

export interface Plotted {
  series: readonly ChartSeries[];
  hidden: ReadonlySet<string>;
  unit: Unit;
  xUnit: XUnit;
  log: boolean;
  group: ChartGroup;
  height: number;
  scheme: Scheme;
  near: boolean;
}

/** Keeps a uplot in `place` that shows what is `plotted`, while it is near. */
export function usePlot(place: RefObject<HTMLDivElement | null>, plotted: Plotted): void {
  const { series, hidden, unit, xUnit, log, group, height, scheme, near } = plotted;
  const now = useRef(plotted);
  const redraw = useRef<() => void>(() => undefined);
  const curves = JSON.stringify(series.map((one) => [one.key, one.color, partsOf(one)]));
  useEffect(() => {
    now.current = plotted;
  });
  useEffect(() => redraw.current(), [series]);
  useEffect(() => {
    if (!near) return undefined;
    const element = place.current!;
    const looks = series.flatMap((one) =>
      partsOf(one).map((part) => ({ color: one.color, part, shown: !hidden.has(one.key) })),
    );
    const width = () => Math.max(120, element.clientWidth);
    const draw = (u: uPlot) => {
      const { series: all, hidden: off, log: byLog } = now.current;
      u.setData(drawn(all, off, group.visible, byLog) as uPlot.AlignedData);
    };
    const marks = () => marksOf(now.current.series, now.current.hidden, group.visible);
    const options = optionsOf({ curves: looks, unit, xUnit, log, scheme, group, marks }, width(), height);
    const u = new uPlot(options, [[], ...looks.map(() => [])] as unknown as uPlot.AlignedData, element);
    draw(u);
    let frame = 0;
    const soon = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        draw(u);
      });
    };
    redraw.current = soon;
    const sizes = new ResizeObserver(() => {
      if (width() !== u.width) u.setSize({ width: width(), height });
      soon();
    });
    sizes.observe(element);
    const unwatch = group.watch((what) => {
      if (what === 'range') soon();
      else follow(u, group);
    });
    const onMove = (event: MouseEvent) => {
      if (event.buttons === 0) group.setCrosshair({ x: u.posToVal(event.clientX - u.rect.left, 'x') });
    };
    const onLeave = () => group.setCrosshair(null);
    u.over.addEventListener('mousemove', onMove);
    u.over.addEventListener('mouseleave', onLeave);
    return () => {
      cancelAnimationFrame(frame);
      unwatch();
      sizes.disconnect();
      redraw.current = () => undefined;
      u.destroy();
    };
    // New points of the same curves are drawn into the same uplot.
  }, [place, near, curves, hidden, unit, xUnit, log, group, height, scheme]);
}

/** Puts the crosshair where keys have moved it; the pointer's are moved by uplot itself. */
function follow(u: uPlot, group: ChartGroup): void {
  if (!group.crosshair) u.setCursor({ left: -10, top: -10 });
  else if (group.crosshair.by !== undefined) {
    u.setCursor({ left: u.valToPos(group.crosshair.x, 'x'), top: u.over.clientHeight / 2 });
  }
}
