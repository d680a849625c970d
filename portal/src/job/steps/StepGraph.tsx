// The steps as boxes, from left to right in the order in which they can run, with lines for what they wait for.
import { SegmentedControl, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { memo, useMemo, useState } from 'react';
import { Link } from 'wouter';
import type { Child } from '../../api/client';
import { StateBadge } from '../../parts/StateBadge';
import { useView } from '../../parts/useView';
import type { Edge } from './graph';
import { layOut, type Line, type Placed } from './layout';
import { pathOf, ran, within } from './stepText';
import './steps.css';

const SIZE = { width: 204, height: 76, gapX: 56, gapY: 18 };
const PADDING = 34; // of the frame, both sides
const SMALLEST = 0.4;

interface Props {
  steps: Child[];
  edges: Edge[];
  now: number;
}

export function StepGraph({ steps, edges, now }: Props) {
  const names = steps.map((step) => step.step).join('\n');
  const layout = useMemo(() => layOut(names === '' ? [] : names.split('\n'), edges, SIZE), [names, edges]);
  const { ref, width } = useElementSize();
  const [view, setView] = useView();
  const [near, setNear] = useState<string | null>(null);
  const fitting = Math.max(SMALLEST, Math.min(1, (width - PADDING) / layout.width));
  const wide = width > 0 && layout.width > width - PADDING;
  const fits = wide && view.get('size') === 'fit';
  const scale = fits ? fitting : 1;
  const byName = new Map(steps.map((step) => [step.step, step]));
  return (
    <div>
      {wide && (
        <SegmentedControl
          size="xs"
          mb="xs"
          aria-label="Size of the graph"
          data={[{ value: 'full', label: 'Full size' }, { value: 'fit', label: 'Fit' }]}
          value={fits ? 'fit' : 'full'}
          onChange={(size) => setView({ size })}
        />
      )}
      <div className="graph" ref={ref} role="group" aria-label="Graph of the steps" tabIndex={0}>
        <div style={{ width: layout.width * scale, height: layout.height * scale }}>
          <div
            className="graph-plane"
            style={{ width: layout.width, height: layout.height, transform: scale < 1 ? `scale(${scale})` : undefined }}
            onPointerLeave={() => setNear(null)}
          >
            <Lines lines={layout.lines} edges={edges} near={near} />
            {layout.steps.map((place) => {
              const step = byName.get(place.name);
              return step && <Box key={place.name} step={step} place={place} now={now} onNear={setNear} />;
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

interface LinesProps {
  lines: Line[];
  edges: Edge[];
  near: string | null;
}

const Lines = memo(function Lines({ lines, edges, near }: LinesProps) {
  const taken = new Map(edges.map((edge) => [`${edge.from}\n${edge.to}`, edge.takes]));
  return (
    <svg className="graph-lines" width="100%" height="100%" aria-hidden="true">
      <defs>
        <marker id="graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"
          markerUnits="userSpaceOnUse" orient="auto">
          <path className="graph-arrow" d="M0 0 8 4 0 8Z" />
        </marker>
      </defs>
      {lines.map(({ from, to, points }) => (
        <path
          key={`${from}\n${to}`}
          className="graph-line"
          data-kind={taken.get(`${from}\n${to}`)?.length ? 'data' : 'order'}
          data-near={near === from || near === to ? '' : undefined}
          d={curve(points)}
          markerEnd="url(#graph-arrow)"
        />
      ))}
    </svg>
  );
});

/** Level where it leaves and where it arrives, and across the layers that it passes. */
function curve(points: Line['points']): string {
  return points
    .map(({ x, y }, index) => {
      const before = points[index - 1];
      if (!before) return `M${x} ${y}`;
      const middle = (before.x + x) / 2;
      return `C${middle} ${before.y} ${middle} ${y} ${x} ${y}`;
    })
    .join('');
}

interface BoxProps {
  step: Child;
  place: Placed;
  now: number;
  onNear(name: string | null): void;
}

function Box({ step, place, now, onNear }: BoxProps) {
  const path = pathOf(step);
  const style = { left: place.x, top: place.y, width: SIZE.width, height: SIZE.height };
  const listen = {
    onPointerEnter: () => onNear(step.step),
    onFocus: () => onNear(step.step),
    onBlur: () => onNear(null),
  };
  const more = step.reused_from ? 'reused' : ran(step, now);
  const inside = (
    <>
      <Text size="sm" fw={600} className="one-line" title={step.step}>
        {step.step}
      </Text>
      <div style={{ display: 'flex', gap: 8, alignItems: 'center', marginTop: 2 }}>
        <StateBadge state={step.state} />
        <Text size="xs" className="one-line">
          {more}
        </Text>
      </div>
      {within(step) && (
        <Text size="xs" className="one-line" mt={1}>
          {within(step)}
        </Text>
      )}
    </>
  );
  if (!path) {
    return (
      <div className="graph-step" data-state={step.state} style={style} {...listen}>
        {inside}
      </div>
    );
  }
  return (
    <Link href={path} className="graph-step" data-state={step.state} style={style} title={step.reason} {...listen}>
      {inside}
    </Link>
  );
}
