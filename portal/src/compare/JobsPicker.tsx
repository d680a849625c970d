// Which jobs are compared: found by name or id, shown with their colours, hidden for a while or taken away.
import { Anchor, Button, CloseButton, Group, Loader, MultiSelect, Text, useComputedColorScheme } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { answer, service } from '../api/client';
import { Swatch } from '../parts/ChartLegend';
import { MOST_COMPARED } from '../parts/mostCompared';
import { StateBadge } from '../parts/StateBadge';
import type { Compared } from './useCompared';

const RECENT = 500;

const recentQuery = queryOptions({
  queryKey: ['recent'],
  queryFn: () => answer(service.GET('/v1/job-summaries', { params: { query: { limit: RECENT } } })),
  staleTime: 10_000,
});

interface PickerProps {
  ids: readonly string[];
  onIds(ids: string[]): void;
}

/** A search box over recent jobs; the id of any other can be given in full. */
export function JobsPicker({ ids, onIds }: PickerProps) {
  const recent = useQuery(recentQuery);
  const [search, setSearch] = useState('');
  const options = (recent.data?.jobs ?? []).map(({ id, display_name, state }) => ({
    value: id,
    label: `${display_name} · ${id} · ${state}`,
  }));
  const known = new Set(options.map(({ value }) => value));
  const others = [...new Set([...ids, search.trim()])].filter((id) => /^[\w.-]+$/.test(id) && !known.has(id));
  return (
    <MultiSelect
      label="Jobs"
      description={`Up to ${MOST_COMPARED}: the newest ${RECENT} by name, any other by its id`}
      placeholder={ids.length < MOST_COMPARED ? 'Add a job by name or id' : 'Remove one to add another'}
      data={[...options, ...others.map((id) => ({ value: id, label: id }))]}
      value={[...ids]}
      onChange={(chosen) => (onIds(chosen), setSearch(''))}
      searchValue={search}
      onSearchChange={setSearch}
      searchable
      hidePickedOptions
      limit={40}
      maxValues={MOST_COMPARED}
      nothingFoundMessage="No job has this name"
      renderPill={() => null}
      maw={640}
    />
  );
}

interface ChosenProps {
  compared: readonly Compared[];
  hidden: ReadonlySet<string>;
  onToggle(id: string): void;
  onRemove(id: string): void;
}

export function ChosenJobs({ compared, hidden, onToggle, onRemove }: ChosenProps) {
  const scheme = useComputedColorScheme('light');
  return (
    <ul aria-label="Compared jobs" style={{ listStyle: 'none', margin: 0, padding: 0 }}>
      {compared.map(({ id, color, job, error }) => (
        <li key={id}>
          <Group gap="xs" wrap="nowrap" mih={32}>
            <Swatch color={color} scheme={scheme} />
            <Anchor component={Link} href={`/jobs/${encodeURIComponent(id)}`} size="sm" className="one-line">
              {job ? `${job.display_name} · ${id}` : id}
            </Anchor>
            {job && <StateBadge state={job.state} />}
            {!job && !error && <Loader size="xs" role="img" aria-label="Loading" />}
            {error && (
              <Text size="sm" fw={600} role="alert" className="one-line">
                {error.message}
              </Text>
            )}
            <Button
              size="compact-xs"
              variant="default"
              ml="auto"
              flex="none"
              aria-pressed={hidden.has(id)}
              aria-label={`Hide the curves of ${id}`}
              onClick={() => onToggle(id)}
            >
              {hidden.has(id) ? 'Show' : 'Hide'}
            </Button>
            <CloseButton size="sm" aria-label={`Remove ${id}`} onClick={() => onRemove(id)} />
          </Group>
        </li>
      ))}
    </ul>
  );
}
