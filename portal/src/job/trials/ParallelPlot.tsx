// Parameters and metric side by side; a range on an axis keeps the trials that are within it.
import { useElementSize } from '@mantine/hooks';
import { memo, type PointerEvent, useMemo, useState } from 'react';
import { AxisBrush } from './AxisBrush';
import { type Frame, GRADES, gradesOf, nearest, pathOf, pointsOf } from './parallel';
import type { Axis } from './scales';
import { filterOf, METRIC, type Ranges, type Trial } from './trial';

const HEIGHT = 340;
const TOP = 40;
const BOTTOM = 24;
const LEFT = 72;
const RIGHT = 40;
const NARROWEST = 120; // between two axes
const REACH = 16;
const LABEL = 18; // characters

interface Props {
  trials: Trial[];
  axes: Axis[];
  metric: string;
  maximize: boolean;
  ranges: Ranges;
  setRanges(ranges: Ranges): void;
  best: Trial | null;
  looked: Trial | null;
  look(trial: Trial): void;
}

export const ParallelPlot = memo(function ParallelPlot(props: Props) {
  const { trials, axes, metric, maximize, ranges, setRanges, best, looked, look } = props;
  const { ref, width: there } = useElementSize();
  const [drawn, setDrawn] = useState<Ranges | null>(null); // while a range is drawn
  const now = drawn ?? ranges;
  const width = Math.max(there, LEFT + RIGHT + NARROWEST * (axes.length - 1));
  const frame = useMemo<Frame>(() => {
    const apart = (width - LEFT - RIGHT) / Math.max(1, axes.length - 1);
    return { xs: axes.map((_, index) => LEFT + index * apart), top: TOP, bottom: HEIGHT - BOTTOM };
  }, [width, axes]);
  const lines = useMemo(
    () => {
      const grades = gradesOf(trials, maximize);
      return trials.map((trial) => {
        const points = pointsOf(trial, axes, frame);
        return { trial, points, path: pathOf(points), grade: grades.get(trial) ?? null };
      });
    },
    [trials, axes, frame, maximize],
  );
  const kept = useMemo(() => {
    const keeps = filterOf(axes, now);
    return lines.filter(({ trial }) => keeps(trial));
  }, [lines, axes, now]);
  const all = useMemo(() => joined(lines), [lines]);
  const paths = useMemo(() => pathsOf(kept), [kept]);
  const lookAt = (event: PointerEvent<SVGSVGElement>) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    const found = nearest(kept, event.clientX - left, event.clientY - top, REACH);
    if (found) look(found);
  };
  const lineOf = (trial: Trial | null) => trial && lines.find((line) => line.trial.step === trial.step)?.path;
  const change = (axis: Axis, range: readonly [string, string] | null, done: boolean) => {
    const next = new Map(now);
    if (range) next.set(axis.name, range);
    else next.delete(axis.name);
    setDrawn(done ? null : next);
    if (done) setRanges(next);
  };
  return (
    <div ref={ref} style={{ overflowX: 'auto' }} tabIndex={0} role="group" aria-label="Parameters and metric">
      {there > 0 && (
        <svg className="plot" width={width} height={HEIGHT} onPointerMove={lookAt}>
          <g aria-hidden="true">
            {kept.length < lines.length && <path className="plot-lines" data-kind="out" d={all} />}
            {paths.map(({ kind, grade, d }) => (
              <path
                key={`${kind}${grade}`}
                className="plot-lines"
                data-kind={kind}
                style={kind === 'in' ? { opacity: 0.22 + (0.7 * grade) / (GRADES - 1) } : undefined}
                d={d}
              />
            ))}
            {best && <path className="plot-best" d={lineOf(best) ?? ''} />}
            {looked && <path className="plot-looked" d={lineOf(looked) ?? ''} />}
          </g>
          {axes.map((axis, index) => (
            <g key={axis.name} transform={`translate(${frame.xs[index]} 0)`}>
              <AxisMarks axis={axis} name={axis.name === METRIC ? metric : axis.name} frame={frame} />
              <AxisBrush
                axis={axis}
                label={axis.name === METRIC ? metric : axis.name}
                range={now.get(axis.name)}
                frame={frame}
                onChange={(range, done) => change(axis, range, done)}
              />
            </g>
          ))}
        </svg>
      )}
    </div>
  );
});

interface Drawn {
  path: string;
  grade: number | null;
}

function joined(lines: Drawn[]): string {
  return lines.map((line) => line.path).join('');
}

/** One path for trials without a metric, and one for each grade. */
function pathsOf(kept: Drawn[]): { kind: 'none' | 'in'; grade: number; d: string }[] {
  const grades = Array.from({ length: GRADES }, (_, grade) => ({
    kind: 'in' as const, grade, d: joined(kept.filter((line) => line.grade === grade)),
  }));
  return [{ kind: 'none', grade: 0, d: joined(kept.filter((line) => line.grade == null)) }, ...grades];
}

function short(text: string): string {
  return text.length > LABEL ? `${text.slice(0, LABEL - 1)}…` : text;
}

function AxisMarks({ axis, name, frame }: { axis: Axis; name: string; frame: Frame }) {
  return (
    <g>
      <text className="plot-name plot-halo" y={16} textAnchor="middle">
        {short(name)}
        <title>{`${name}${axis.kind === 'log' ? ', logarithmic' : ''}`}</title>
      </text>
      <line className="plot-axis" y1={frame.top} y2={frame.bottom} />
      {axis.ticks.map((tick) => (
        <g key={tick.label} transform={`translate(0 ${frame.bottom - tick.at * (frame.bottom - frame.top)})`}>
          <line className="plot-axis" x1={-4} x2={0} />
          <text className="plot-halo" x={-8} dy="0.32em" textAnchor="end">
            {short(tick.label)}
            {tick.label.length > LABEL && <title>{tick.label}</title>}
          </text>
        </g>
      ))}
    </g>
  );
}
