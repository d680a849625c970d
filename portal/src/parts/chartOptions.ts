// How uplot draws our charts: axes with units, colours of the page, what the mouse does.
import uPlot from 'uplot';
import type { ChartGroup } from './chartGroup';
import type { Part } from './chartSeries';
import { type Scheme, strokeOf } from './palette';
import { ELAPSED_STEPS, elapsedTick, STEP_STEPS, tick, tickSteps, type Unit, type XUnit } from './units';

export interface Drawn {
  color: number; // of the palette
  part: Part;
  shown: boolean;
}

export interface Looks {
  curves: Drawn[];
  unit: Unit;
  xUnit: XUnit;
  log: boolean;
  scheme: Scheme;
  group: ChartGroup;
  /** Returns the places on the horizontal axis where values are not finite. */
  marks(): readonly number[];
}

const TEXT: Record<Scheme, string> = { light: '#495057', dark: '#c9c9c9' };
const GRID: Record<Scheme, string> = { light: 'rgba(0,0,0,0.08)', dark: 'rgba(255,255,255,0.1)' };
const MARK: Record<Scheme, string> = { light: '#c92a2a', dark: '#ff8787' }; // as .chart-lost has it
// How much of a curve's colour its band has, of ff. The edges are stronger: a single spike is as narrow as they are.
const BAND = '38';
const EDGE = '70';
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, Ubuntu, sans-serif';

// Hours from 0 to 24, days as the rest of the page writes them. uplot's rows: from which distance of ticks in
// seconds on, the usual text, and what is added where a year, a month, a day … begins.
const TIMES = [
  [86_400, '{YYYY}-{MM}-{DD}', null, null, null, null, null, null, 1],
  [3600, '{HH}:{mm}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
  [60, '{HH}:{mm}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
  [0.001, '{HH}:{mm}:{ss}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
];

/** The options of a chart with these looks. */
export function optionsOf(looks: Looks, width: number, height: number): uPlot.Options {
  const { group, log, scheme, unit } = looks;
  return {
    width,
    height,
    legend: { show: false },
    padding: [8, 20, 0, 0],
    scales: {
      x: { time: looks.xUnit === 'time', range: () => [...group.visible] },
      y: { distr: log ? 3 : 1, range: (_, min, max) => rangeOf(min, max, log, unit) },
    },
    axes: [xAxis(looks.xUnit, scheme), yAxis(unit, log, scheme)],
    series: [{}, ...looks.curves.map((curve) => seriesOf(curve, scheme))],
    bands: looks.curves.flatMap(({ color, part }, i) => {
      const fill = strokeOf(color, scheme).color + BAND;
      return part === 'high' ? [{ series: [i + 1, i] as [number, number], fill }] : [];
    }),
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: 4 },
      sync: {
        key: group.key,
        scales: ['x', null],
        setSeries: false,
        // Only the crosshair is shared: a selection of one chart becomes the range of all by the group.
        filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' },
      },
      points: { size: 7 },
      bind: {
        mousedown: (u, _, begin) => (event) => (event.shiftKey ? panFrom(u, event, group) : begin(event)),
        dblclick: () => () => (group.setRange(null), null),
      },
    },
    hooks: { setSelect: [(u) => zoomTo(u, group)], draw: [(u) => drawMarks(u, looks.marks(), MARK[scheme])] },
  };
}

function seriesOf({ color, part, shown }: Drawn, scheme: Scheme): uPlot.Series {
  const { color: stroke, dash } = strokeOf(color, scheme);
  const isEdge = part === 'low' || part === 'high';
  if (isEdge) return { show: shown, stroke: stroke + EDGE, width: 1, points: { show: false } };
  const faint = part === 'raw';
  return {
    show: shown,
    stroke,
    dash: dash.length > 0 ? dash : undefined,
    width: faint ? 1 : 1.5,
    alpha: faint ? 0.3 : 1,
    points: faint ? { show: false } : { size: 4, fill: stroke },
  };
}

/** Draws a triangle at the lower edge at each of the places. */
function drawMarks(u: uPlot, places: readonly number[], color: string): void {
  const { ctx, bbox } = u;
  const size = 5 * devicePixelRatio;
  const bottom = bbox.top + bbox.height;
  ctx.save();
  ctx.fillStyle = color;
  for (const at of new Set(places.map((place) => Math.round(u.valToPos(place, 'x', true))))) {
    ctx.beginPath();
    ctx.moveTo(at, bottom - 2 * size);
    ctx.lineTo(at + size, bottom);
    ctx.lineTo(at - size, bottom);
    ctx.fill();
  }
  ctx.restore();
}

function rangeOf(min: number | null, max: number | null, log: boolean, unit: Unit): uPlot.Range.MinMax {
  if (min == null || max == null || !Number.isFinite(min) || !Number.isFinite(max)) return log ? [1, 10] : [0, 1];
  if (log) return logRange(min, max);
  const soft = unit === 'number' ? null : 0; // what a machine uses is seen from zero
  return uPlot.rangeNum(min, max, {
    min: { pad: 0.08, soft: soft ?? undefined, mode: soft === null ? 0 : 1 },
    max: { pad: 0.08, soft: undefined, mode: 0 },
  });
}

/** A little more than the values on each side; full powers of ten would squeeze curves that change little. */
function logRange(min: number, max: number): uPlot.Range.MinMax {
  const pad = min === max ? 2 : (max / min) ** 0.06;
  return [min / pad, max * pad];
}

function xAxis(unit: XUnit, scheme: Scheme): uPlot.Axis {
  const looks: uPlot.Axis = { stroke: TEXT[scheme], font: FONT, grid: { stroke: GRID[scheme], width: 1 }, space: 64 };
  if (unit === 'time') return { ...looks, size: 42, ticks: { show: false }, values: TIMES };
  const values: uPlot.Axis.DynamicValues = (_, splits, __, ___, step) =>
    splits.map((at) => (at == null ? '' : unit === 'elapsed' ? elapsedTick(at) : tick('number', at, step)));
  return { ...looks, size: 30, ticks: { show: false }, values, incrs: unit === 'elapsed' ? ELAPSED_STEPS : STEP_STEPS };
}

function yAxis(unit: Unit, log: boolean, scheme: Scheme): uPlot.Axis {
  return {
    stroke: TEXT[scheme],
    font: FONT,
    grid: { stroke: GRID[scheme], width: 1 },
    ticks: { show: false },
    gap: 6,
    space: 24,
    incrs: log ? undefined : tickSteps(unit),
    splits: log ? (_, __, min, max) => logSplits(min, max) : undefined,
    values: (_, splits, __, ___, step) =>
      splits.map((at) => (at == null ? '' : tick(unit, at, log ? 10 ** Math.floor(Math.log10(at)) : step))),
    size: (_, values) => Math.max(44, 14 + 6.2 * Math.max(0, ...(values ?? []).map((text) => String(text).length))),
  };
}

/** 1 to 9 of each power of ten. uplot's own never end for some axes that begin just below a power. */
function logSplits(min: number, max: number): number[] {
  const splits: number[] = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
    for (let digit = 1; digit <= 9; digit++) splits.push(Number(`${digit}e${power}`));
  }
  return splits.filter((at) => at >= min && at <= max);
}

function zoomTo(u: uPlot, group: ChartGroup): void {
  const { left, width } = u.select;
  if (width <= 0) return;
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  group.setRange([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
}

function panFrom(u: uPlot, begin: MouseEvent, group: ChartGroup): null {
  if (!group.range) return null;
  group.setCrosshair(null);
  const [from, to] = group.range;
  const perPixel = (to - from) / u.over.clientWidth;
  const onMove = (event: MouseEvent) => {
    const by = (begin.clientX - event.clientX) * perPixel;
    group.shift([from + by, to + by]);
  };
  const onUp = () => {
    window.removeEventListener('mousemove', onMove);
    window.removeEventListener('mouseup', onUp);
  };
  window.addEventListener('mousemove', onMove);
  window.addEventListener('mouseup', onUp);
  return null;
}
