// How curves are shown: smoothing, a logarithmic axis, which names, and back from a part to all.
import { Button, Group, Slider, Switch, Text, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { type ChartGroup, useZoomed } from './chartGroup';
import { smoothingIn, useView } from './useView';

/** The weight in the address, and its setter; it follows the hand before the address does. */
export function useSmoothing(): [number, (weight: number) => void, (weight: number) => void] {
  const [view, setView] = useView();
  const [weight, setWeight] = useState(() => smoothingIn(view));
  return [weight, setWeight, (kept) => setView({ smooth: kept > 0 ? String(kept) : null })];
}

export function Smoothing({ value, onChange, onKeep }: {
  value: number;
  onChange(weight: number): void;
  onKeep(weight: number): void;
}) {
  return (
    <Group gap="xs" wrap="nowrap">
      <Text size="sm" id="smoothing">
        Smoothing
      </Text>
      <Slider
        w={130}
        min={0}
        max={0.99}
        step={0.01}
        value={value}
        label={(weight) => weight.toFixed(2)}
        thumbProps={{ 'aria-labelledby': 'smoothing' }}
        onChange={onChange}
        onChangeEnd={onKeep}
      />
      <Text size="sm" w={32} aria-hidden>
        {value.toFixed(2)}
      </Text>
    </Group>
  );
}

export function LogSwitch() {
  const [view, setView] = useView();
  return (
    <Switch
      label="Log scale"
      checked={view.has('log')}
      onChange={(event) => setView({ log: event.currentTarget.checked ? '1' : null })}
    />
  );
}

export function NameSearch({ children }: { children?: ReactNode }) {
  const [view, setView] = useView();
  return (
    <TextInput
      type="search"
      aria-label="Search metrics by name"
      placeholder="Search metrics"
      w={200}
      value={view.get('q') ?? ''}
      onChange={(event) => setView({ q: event.currentTarget.value })}
      rightSection={children}
    />
  );
}

/** How to zoom; once zoomed, the way back. */
export function ZoomHint({ group, banded = false }: { group: ChartGroup; banded?: boolean }) {
  const zoomed = useZoomed(group);
  const band = ' A band goes from the least to the greatest value between two points; zoomed in, each is a point.';
  return (
    <Group gap="xs">
      <Button size="compact-sm" variant="default" onClick={() => group.zoom(0.5)}>
        Zoom in
      </Button>
      <Button size="compact-sm" variant="default" disabled={!zoomed} onClick={() => group.setRange(null)}>
        Show all
      </Button>
      <Text size="xs" c="dimmed" visibleFrom="md">
        {zoomed ? 'Shift and drag moves; a double click shows all.' : 'Drag over a chart to zoom.'}
        {banded && band}
      </Text>
    </Group>
  );
}

export function NoMetricNamed({ search }: { search: string }) {
  const [, setView] = useView();
  return (
    <Group>
      <Text>{`No metric has “${search}” in its name.`}</Text>
      <Button size="compact-sm" variant="default" onClick={() => setView({ q: null })}>
        Show all metrics
      </Button>
    </Group>
  );
}
