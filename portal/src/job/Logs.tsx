// A job's output: all ranks or one, live, with a search. It opens at its end, or at the line that the address names, and
// loads more as one scrolls. What is chosen is in the address.
import { Alert, Anchor, Group, Loader, Stack, Text } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { Job } from '../api/client';
import { hasEnded } from '../api/queries';
import { ago } from '../parts/format';
import { Empty, Loading } from '../parts/Notices';
import { save } from '../parts/save';
import { useKeys } from '../parts/useKeys';
import { useView } from '../parts/useView';
import { type Feed, useFeed, useRows } from './logs/feed';
import { CAPACITY, type LineStore, type Source, SOURCES } from './logs/lineStore';
import { type Choice, chosen, matches, placeOf, searchFor } from './logs/lineView';
import { LogBar } from './logs/LogBar';
import { LogList } from './logs/LogList';
import type { RowLooks } from './logs/LogRow';
import './logs/logs.css';

const MOST = CAPACITY.toLocaleString('en');
const LOOKS: RowLooks = { times: false, wrap: false, rankColors: true };

export default function Logs({ job }: { job: Job }) {
  const [view, setView] = useView();
  const line = view.get('line');
  const feed = useFeed(job.id, line);
  const { store } = feed;
  const [looks, setLooks] = useLocalStorage<RowLooks>({ key: 'tutti-logs', defaultValue: LOOKS });
  const [jump, setJump] = useState(0);
  const searchField = useRef<HTMLInputElement>(null);

  const rank = numberOf(view.get('rank'));
  const source = SOURCES.find((one) => one === view.get('stream')) ?? null;
  const find = view.get('find') ?? '';
  const only = view.has('only') && find !== '';
  const named = line === null || !feed.opened ? null : feed.rowOf(line);
  const isAway = line !== null && feed.opened && named === null && !feed.hasSought(line);
  useEffect(() => {
    if (isAway) void feed.open(line);
  }, [feed, isAway, line]);

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

  const name = useCallback((row: number) => setView({ line: store.cursor(row) }), [setView, store]);
  const goTo = (row: number) => {
    name(row);
    setJump((before) => before + 1);
  };
  const step = (by: 1 | -1) => {
    if (!found || found.rows.length === 0) return;
    // From the end, where one has not been anywhere yet, the newest match comes first.
    const place = named === null ? found.rows.length : placeOf(found.rows, by > 0 ? named + 1 : named);
    const next = named === null ? place - 1 : by > 0 ? place : place - 1;
    goTo(found.rows[(next + found.rows.length) % found.rows.length]!);
  };
  const cause = job.failures.find((failure) => failure.rank !== null && !failure.consequence)?.rank ?? null;
  const toCause = useCallback(async () => {
    const row = cause === null ? null : await feed.findCause(cause);
    if (row === null) return;
    setView({
      line: feed.store.cursor(row), cause: null, rank: rank === cause ? rank : null, stream: null, only: null,
    });
    setJump((before) => before + 1);
  }, [cause, feed, setView, rank]);
  const causeIsDue = view.has('cause') && feed.ended;
  useEffect(() => {
    if (causeIsDue) void toCause();
  }, [causeIsDue, toCause]);
  const goToLine = (next: string | null) => {
    setView({ line: next });
    if (next === null) void feed.open(null);
    else setJump((before) => before + 1);
  };

  useKeys({ '/': () => searchField.current?.focus(), n: () => step(1), N: () => step(-1) });

  const place = found && named !== null ? placeOf(found.rows, named) : null;
  const foundAt = place !== null && found!.rows[place] === named ? place : null;
  const isWhole = store.before === null && feed.isAtEnd;
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
        found={found && { lines: found.rows.length, at: foundAt, isWhole }}
        onAll={store.before !== null && !store.isFull && !feed.isLoading ? feed.all : null}
        onStep={step}
        onCause={cause !== null && store.rows > 0 ? toCause : null}
        looks={looks}
        onLooks={setLooks}
        onSave={() => save(`${job.id}.txt`, textOf(store, rows), 'text/plain')}
        searchField={searchField}
      />
      <Notes job={job} feed={feed} line={line} named={named} onLine={goToLine} />
      {rows.length === 0 ? (
        <Nothing job={job} feed={feed} filtered={only || rank !== null || source !== null} />
      ) : (
        <LogList
          store={store}
          rows={rows}
          looks={looks}
          search={search}
          named={named}
          jump={jump}
          onName={name}
          isAtEnd={feed.isAtEnd}
          onEnd={() => goToLine(null)}
          onOlder={only || store.before === null || feed.isLoading ? null : feed.older}
          onNewer={feed.isLoading ? null : feed.newer}
        />
      )}
    </Stack>
  );
}

interface NotesProps {
  job: Job;
  feed: Feed;
  line: string | null;
  named: number | null;
  /** Goes to a line by its number or cursor; null: to the end. */
  onLine(line: string | null): void;
}

/** What one has to know about the lines that are shown. */
function Notes({ job, feed, line, named, onLine }: NotesProps) {
  const { away, store } = feed;
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
          {feed.opened && partOf(feed, !feed.ended && !away && !hasEnded(job.state))}
        </Text>
        {feed.opened && store.before !== null && (
          <>
            <Way onClick={() => onLine('1')}>From the beginning</Way>
            {store.isFull ? null : <Way onClick={() => void feed.all()}>Load all</Way>}
          </>
        )}
        {feed.isLoading && <Loader size={12} aria-label="Loading lines" />}
        {line !== null && named === null && feed.hasSought(line) && (
          <Text size="xs">The line of this address is not among them.</Text>
        )}
      </Group>
    </>
  );
}

/** Which lines are kept; `runs`: more may come. */
function partOf({ store, isAtEnd }: Feed, runs: boolean): string {
  const lines = `${store.rows.toLocaleString('en')} ${store.rows === 1 ? 'line' : 'lines'}`;
  const live = runs ? ', live' : '';
  const most = store.isFull ? ` This page keeps ${MOST} at most; the files have all.` : '';
  if (store.before === null) return isAtEnd ? lines + live : `The first ${lines}; more come as one scrolls down.${most}`;
  if (!isAtEnd) return `${lines} from the middle; more come as one scrolls.${most}`;
  return `The last ${lines}${live}; earlier ones come as one scrolls up.${most}`;
}

function Way({ onClick, children }: { onClick(): void; children: string }) {
  return (
    <Anchor component="button" type="button" size="xs" underline="always" onClick={onClick}>
      {children}
    </Anchor>
  );
}

function Nothing({ job, feed, filtered }: { job: Job; feed: Feed; filtered: boolean }) {
  const { opened, ended } = feed;
  if (!opened) return <Loading />;
  if (filtered) {
    return (
      <Empty title={feed.store.before === null ? 'No line is like that' : 'No line that is loaded is like that'}>
        <Text>Choose all ranks and streams, load all, or search for something else.</Text>
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
