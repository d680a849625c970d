// What chooses the jobs that are shown: words, states, an experiment.
import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { type KeyboardEvent, type RefObject, useEffect, useRef, useState } from 'react';
import type { State } from '../api/client';
import { type Filter, SORT_KEYS, type SortKey, STATES } from './filter';
import css from './jobs.module.css';

export interface FiltersProps {
  filter: Filter;
  onFilter(change: Partial<Filter>): void;
  counts: Map<State, number>;
  experiments: string[];
  search: RefObject<HTMLInputElement | null>;
  /** The keyboard goes on to the rows. */
  onLeave(): void;
}

export function Filters({ filter, onFilter, counts, experiments, search, onLeave }: FiltersProps) {
  const shown = STATES.filter((state) => counts.has(state) || filter.states.includes(state));
  const toggle = (state: State) => {
    const states = filter.states.includes(state)
      ? filter.states.filter((other) => other !== state)
      : [...filter.states, state];
    onFilter({ states });
  };
  return (
    <div className={css.filters} role="search">
      <Search
        value={filter.search}
        onChange={(words) => onFilter({ search: words })}
        input={search}
        onLeave={onLeave}
      />
      {(experiments.length > 1 || filter.experiment) && (
        <NativeSelect
          size="xs"
          aria-label="Experiment"
          w={170}
          value={filter.experiment}
          onChange={(event) => onFilter({ experiment: event.currentTarget.value })}
        >
          <option value="">All experiments</option>
          {filter.experiment && !experiments.includes(filter.experiment) && <option>{filter.experiment}</option>}
          {experiments.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </NativeSelect>
      )}
      <SortSelect filter={filter} onFilter={onFilter} />
      <div className={css.states} role="group" aria-label="States">
        {shown.map((state) => (
          <Button
            key={state}
            size="compact-xs"
            variant={filter.states.includes(state) ? 'filled' : 'default'}
            aria-pressed={filter.states.includes(state)}
            onClick={() => toggle(state)}
            style={{ flex: 'none' }}
          >
            {state} {(counts.get(state) ?? 0).toLocaleString('en-US')}
          </Button>
        ))}
      </div>
    </div>
  );
}

interface SearchProps {
  value: string;
  onChange(words: string): void;
  input: RefObject<HTMLInputElement | null>;
  onLeave(): void;
}

const PAUSE = 150; // milliseconds between the last key and the search: browsers limit how often an address changes

/** What is typed is in the field at once, and in the address after a pause. */
function Search({ value, onChange, input, onLeave }: SearchProps) {
  const [text, setText] = useState(value);
  const written = useRef(value);
  const write = useDebouncedCallback((words: string) => {
    written.current = words;
    onChange(words);
  }, PAUSE);
  useEffect(() => {
    if (value === written.current) return; // Someone else has changed the address: back, or a cleared filter.
    written.current = value;
    setText(value);
  }, [value]);
  const enter = (words: string) => {
    setText(words);
    write(words);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && text) enter('');
    else if (event.key === 'Escape' || event.key === 'Enter' || event.key === 'ArrowDown') onLeave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <TextInput
      ref={input}
      className={css.search}
      size="xs"
      type="search"
      aria-label="Search jobs"
      aria-keyshortcuts="/"
      placeholder="Search name, experiment, command, reason"
      value={text}
      onChange={(event) => enter(event.currentTarget.value)}
      onKeyDown={press}
    />
  );
}

const ORDERS: Record<SortKey, [string, string]> = {
  newest: ['Newest first', 'Oldest first'],
  ran: ['Longest first', 'Shortest first'],
  name: ['By name', 'By name, from Z'],
  state: ['By state', 'By state, ended first'],
};

/** Sorts where the table has no heads of columns to click on. */
function SortSelect({ filter, onFilter }: Pick<FiltersProps, 'filter' | 'onFilter'>) {
  const choose = (value: string) => {
    onFilter({ sort: value.replace('-', '') as SortKey, reverse: value.startsWith('-') });
  };
  return (
    <NativeSelect
      size="xs"
      aria-label="Order"
      className={css.narrow}
      value={(filter.reverse ? '-' : '') + filter.sort}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {SORT_KEYS.flatMap((key) => [
        <option key={key} value={key}>
          {ORDERS[key][0]}
        </option>,
        <option key={`-${key}`} value={`-${key}`}>
          {ORDERS[key][1]}
        </option>,
      ])}
    </NativeSelect>
  );
}
