// A range on an axis: drawn with the pointer, or moved at its ends, also by keys. Escape takes it away.
import { type KeyboardEvent, type PointerEvent, useRef } from 'react';
import type { Frame } from './parallel';
import type { Axis } from './scales';
import { placesOf, rangeOf } from './trial';

const WIDTH = 26;
const CLICK = 0.015; // of the axis: less is no range but a click

interface Props {
  axis: Axis;
  label: string;
  range: readonly [string, string] | undefined;
  frame: Frame;
  /** `done`: whether this is it, or it is still being drawn. */
  onChange(range: readonly [string, string] | null, done: boolean): void;
}

export function AxisBrush({ axis, label, range, frame, onChange }: Props) {
  const began = useRef<number | null>(null);
  const places = placesOf(axis, range);
  const [low, high] = places ?? [0, 1];
  const y = (place: number) => frame.bottom - place * (frame.bottom - frame.top);
  const placeOf = (event: PointerEvent<SVGElement>) => {
    const svg = event.currentTarget.ownerSVGElement!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (frame.bottom - (event.clientY - svg.top)) / (frame.bottom - frame.top)));
  };
  const begin = (event: PointerEvent<SVGElement>, from: number) => {
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    began.current = from;
  };
  const move = (event: PointerEvent<SVGElement>) => {
    if (began.current == null) return;
    event.stopPropagation();
    const to = placeOf(event);
    if (Math.abs(to - began.current) >= CLICK) onChange(rangeOf(axis, began.current, to), false);
  };
  const end = (event: PointerEvent<SVGElement>) => {
    if (began.current == null) return;
    const [from, to] = [began.current, placeOf(event)];
    began.current = null;
    onChange(Math.abs(to - from) < CLICK ? null : rangeOf(axis, from, to), true);
  };
  const onKeyDown = (event: KeyboardEvent, isLow: boolean) => {
    const now = isLow ? low : high;
    const other = isLow ? high : low;
    const to = {
      ArrowUp: now + axis.step, ArrowRight: now + axis.step, ArrowDown: now - axis.step, ArrowLeft: now - axis.step,
      PageUp: now + 4 * axis.step, PageDown: now - 4 * axis.step, Home: isLow ? 0 : low + axis.step,
      End: isLow ? high - axis.step : 1,
    }[event.key];
    if (event.key === 'Escape') onChange(null, true);
    else if (to == null) return;
    else if (isLow ? to < other - 1e-9 : to > other + 1e-9) onChange(rangeOf(axis, to, other), true);
    event.preventDefault();
  };
  const handle = (isLow: boolean) => {
    const place = isLow ? low : high;
    const inside = axis.kind === 'category' ? (isLow ? axis.step / 2 : -axis.step / 2) : 0;
    const d = isLow ? 'M-7 10 0 1 7 10Z' : 'M-7 -10 0 -1 7 -10Z';
    return (
      <path
        className="plot-handle"
        data-set={places ? '' : undefined}
        role="slider"
        tabIndex={0}
        aria-label={`${label}, ${isLow ? 'lowest' : 'highest'} that is kept`}
        aria-orientation="vertical"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(place * 100)}
        aria-valuetext={axis.valueAt(place + inside)}
        d={d}
        transform={`translate(0 ${y(place)})`}
        onKeyDown={(event) => onKeyDown(event, isLow)}
        onPointerDown={(event) => begin(event, isLow ? high : low)}
        onPointerMove={move}
        onPointerUp={end}
      />
    );
  };
  return (
    <g>
      <rect
        className="plot-hit"
        x={-WIDTH / 2}
        width={WIDTH}
        y={frame.top}
        height={frame.bottom - frame.top}
        onPointerDown={(event) => begin(event, placeOf(event))}
        onPointerMove={move}
        onPointerUp={end}
        onPointerCancel={() => (began.current = null)}
      />
      {places && (
        <rect className="plot-range" x={-WIDTH / 2} width={WIDTH} y={y(high)} height={Math.max(1, y(low) - y(high))} />
      )}
      {handle(true)}
      {handle(false)}
    </g>
  );
}
