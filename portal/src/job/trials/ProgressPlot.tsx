// How the best metric has become better from trial to trial: a dot for each trial, a step for each new best.
import { useElementSize } from '@mantine/hooks';
import { memo, type PointerEvent, useMemo } from 'react';
import { number } from '../../parts/format';
import { type Axis, axisOf, linearMarks } from './scales';
import { METRIC, progressOf, type Trial } from './trial';

const HEIGHT = 220;
const LEFT = 64;
const RIGHT = 16;
const TOP = 12;
const BOTTOM = 34;

interface Props {
  trials: Trial[];
  metric: string;
  maximize: boolean;
  best: Trial | null;
  looked: Trial | null;
  look(trial: Trial): void;
}

export const ProgressPlot = memo(function ProgressPlot({ trials, metric, maximize, best, looked, look }: Props) {
  const { ref, width } = useElementSize();
  const { points, steps } = useMemo(() => progressOf(trials, maximize), [trials, maximize]);
  const axis = useMemo(() => axisOf(METRIC, points.map((point) => String(point.metric))), [points]);
  const last = Math.max(2, points.at(-1)?.at ?? 2);
  const x = (at: number) => LEFT + ((at - 1) / (last - 1)) * Math.max(0, width - LEFT - RIGHT);
  const y = (value: number) => yOf(axis, value);
  const lookAt = (event: PointerEvent<SVGSVGElement>) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    const [px, py] = [event.clientX - left, event.clientY - top];
    let near = Infinity;
    let found: Trial | null = null;
    for (const point of points) {
      const far = (x(point.at) - px) ** 2 + ((y(point.metric) - py) / 3) ** 2;
      if (far < near) [near, found] = [far, point.trial];
    }
    if (found) look(found);
  };
  const mark = (trial: Trial | null, name: string) => {
    const point = trial && points.find((one) => one.trial.step === trial.step);
    return point && <circle className={name} cx={x(point.at)} cy={y(point.metric)} r={6} />;
  };
  const told = best
    ? `The best ${metric} so far over ${points.length} trials; it is ${number(best.metric)}, of ${best.step}`
    : `No trial has completed with ${metric} yet`;
  return (
    <div ref={ref}>
      {width > 0 && (
        <svg className="plot" width={width} height={HEIGHT} role="img" aria-label={told} onPointerMove={lookAt}>
          {axis.ticks.map((tick) => (
            <g key={tick.label} transform={`translate(0 ${place(tick.at)})`}>
              <line className="plot-grid" x1={LEFT} x2={width - RIGHT} />
              <text x={LEFT - 8} dy="0.32em" textAnchor="end">
                {tick.label}
              </text>
            </g>
          ))}
          {linearMarks(1, last).filter(Number.isInteger).map((at) => (
            <text key={at} x={x(at)} y={HEIGHT - BOTTOM + 16} textAnchor="middle">
              {at}
            </text>
          ))}
          <text x={width - RIGHT} y={HEIGHT - 4} textAnchor="end">
            trial
          </text>
          <path className="plot-dots" d={points.map((point) => `M${x(point.at)} ${y(point.metric)}h0`).join('')} />
          <path className="plot-progress" d={steps.map(({ at, metric: to }, index) => (
            index === 0 ? `M${x(at)} ${y(to)}` : `H${x(at)}V${y(to)}`
          )).join('')} />
          {mark(best, 'plot-best')}
          {mark(looked, 'plot-looked')}
        </svg>
      )}
    </div>
  );
});

function place(at: number): number {
  return HEIGHT - BOTTOM - at * (HEIGHT - TOP - BOTTOM);
}

function yOf(axis: Axis, value: number): number {
  return place(axis.place(String(value)) ?? 0);
}
