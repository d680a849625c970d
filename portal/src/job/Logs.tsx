// A job's output: all ranks or one, live, with a search. What is chosen is in the address.
import { Alert, Group, Loader, Stack, Text } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { Job } from '../api/client';
import { hasEnded } from '../api/queries';
import { ago } from '../parts/format';
import { Empty } from '../parts/Notices';
import { save } from '../parts/save';
import { useKeys } from '../parts/useKeys';
import { useView } from '../parts/useView';
import { useFeed, useRows } from './logs/feed';
import { CAPACITY, type LineStore, type Source, SOURCES } from './logs/lineStore';
import { causeRow, type Choice, chosen, matches, placeOf, searchFor } from './logs/lineView';
import { LogBar } from './logs/LogBar';
import { LogList } from './logs/LogList';
import type { RowLooks } from './logs/LogRow';
import './logs/logs.css';

const MOST = CAPACITY.toLocaleString('en');
const LOOKS: RowLooks = { times: false, wrap: false, rankColors: true };

export default function Logs({ job }: { job: Job }) {
  const feed = useFeed(job.id);
  const { store } = feed;
  const [view, setView] = useView();
  const [looks, setLooks] = useLocalStorage<RowLooks>({ key: 'tutti-logs', defaultValue: LOOKS });
  const [jump, setJump] = useState(0);
  const searchField = useRef<HTMLInputElement>(null);

  const rank = numberOf(view.get('rank'));
  const source = SOURCES.find((one) => one === view.get('stream')) ?? null;
  const find = view.get('find') ?? '';
  const only = view.has('only') && find !== '';
  const named = (numberOf(view.get('line')) ?? 0) - 1;

  const sought = useDeferredValue(find);
  const search = useMemo(() => searchFor(sought), [sought]);
  const choice = useMemo<Choice>(() => ({ rank, source }), [rank, source]);
  const all = useMemo(() => chosen(store, choice), [store, choice]);
  const hits = useMemo(() => {
    if (!search) return null;
    const hit = matches(store, search);
    return (row: number) => all(row) && hit(row);
  }, [store, search, all]);
  const found = useRows(feed, hits);
  const shown = useRows(feed, only ? null : all) ?? found;
  const rows = shown?.rows ?? [];

  const name = useCallback((row: number) => setView({ line: row + 1 }), [setView]);
  const goTo = (row: number) => {
    name(row);
    setJump((before) => before + 1);
  };
  const step = (by: 1 | -1) => {
    if (!found || found.rows.length === 0) return;
    // From the end, where one has not been anywhere yet, the newest match comes first.
    const place = named < 0 ? found.rows.length : placeOf(found.rows, by > 0 ? named + 1 : named);
    const next = named < 0 ? place - 1 : by > 0 ? place : place - 1;
    goTo(found.rows[(next + found.rows.length) % found.rows.length]!);
  };
  const cause = job.failures.find((failure) => failure.rank !== null && !failure.consequence)?.rank ?? null;
  const toCause = useCallback(() => {
    const row = cause === null ? null : causeRow(store, cause);
    if (row === null) return;
    setView({ line: row + 1, cause: null, rank: rank === cause ? rank : null, stream: null, only: null });
    setJump((before) => before + 1);
  }, [cause, store, setView, rank]);
  const causeIsDue = view.has('cause') && feed.ended;
  useEffect(() => {
    if (causeIsDue) toCause();
  }, [causeIsDue, toCause]);

  useKeys({ '/': () => searchField.current?.focus(), n: () => step(1), N: () => step(-1) });

  const foundAt = found && found.rows[placeOf(found.rows, named)] === named ? placeOf(found.rows, named) : null;
  return (
    <Stack gap="xs">
      <LogBar
        job={job}
        ranks={store.highestRank + 1}
        choice={choice}
        onChoice={(next) => setView({ rank: next.rank, stream: next.source })}
        find={find}
        onFind={(text) => setView(text ? { find: text } : { find: null, only: null })}
        only={only}
        onOnly={(on) => setView({ only: on ? 1 : null })}
        found={found && { lines: found.rows.length, at: foundAt }}
        onStep={step}
        onCause={cause !== null && store.end > 0 ? toCause : null}
        looks={looks}
        onLooks={setLooks}
        onSave={() => save(`${job.id}.txt`, textOf(store, rows), 'text/plain')}
        searchField={searchField}
      />
      <Notes job={job} away={feed.away} store={store} named={named} ended={feed.ended} />
      {rows.length === 0 ? (
        <Nothing job={job} ended={feed.ended} filtered={only || rank !== null || source !== null} />
      ) : (
        <LogList
          store={store}
          rows={rows}
          looks={looks}
          search={search}
          named={named < 0 ? null : named}
          jump={jump}
          onName={name}
        />
      )}
    </Stack>
  );
}

interface NotesProps {
  job: Job;
  away: string | null;
  store: LineStore;
  named: number;
  ended: boolean;
}

/** What one has to know about the lines that are shown. */
function Notes({ job, away, store, named, ended }: NotesProps) {
  const removed = job.removed.find(({ kind }) => kind === 'logs');
  return (
    <>
      {away && (
        <Alert color="yellow" role="status" py={6}>
          {away} New lines come once it answers again.
        </Alert>
      )}
      {removed && (
        <Alert color="yellow" py={6}>
          The log files were removed {ago(removed.time)}, as this site keeps them no longer.
        </Alert>
      )}
      <Group gap="md" mih={20}>
        <Text size="xs" c="dimmed" role="status">
          {(store.end - store.first).toLocaleString('en')} lines
          {store.first > 0 &&
            `, the newest of ${store.end.toLocaleString('en')}: this page keeps ${MOST} at most, the files have all`}
          {!ended && !away && !hasEnded(job.state) && ', live'}
        </Text>
        {named >= 0 && named < store.first && (
          <Text size="xs">Line {named + 1} is no longer kept here: download the files to see it.</Text>
        )}
        {named >= store.end && ended && <Text size="xs">There is no line {named + 1}.</Text>}
      </Group>
    </>
  );
}

function Nothing({ job, ended, filtered }: { job: Job; ended: boolean; filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No line is like that">
        <Text>Choose all ranks and streams, or search for something else.</Text>
      </Empty>
    );
  }
  if (ended) return <Empty title="It has printed nothing" />;
  return (
    <Empty title={job.started ? 'Nothing is printed yet' : 'It has not started yet'}>
      <Group gap="xs">
        <Loader size="xs" />
        <Text>{job.started ? 'Lines show here as they come.' : job.reason}</Text>
      </Group>
    </Empty>
  );
}

/** The rows as lines of text. */
function textOf(store: LineStore, rows: readonly number[]): string[] {
  const tag = (row: number, source: Source) => (source === 'state' ? '' : `[${store.rank(row)} ${source}] `);
  return rows.map((row) => `${tag(row, store.source(row))}${store.plain(row)}\n`);
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
