// The list of jobs: what is shown of them, what is chosen, and what the keyboard does.
import { Button, Kbd, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useCallback, useDeferredValue, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { Empty } from '../parts/Notices';
import { useKeys } from '../parts/useKeys';
import { BulkBar, type Done } from './BulkBar';
import { BulkOutcome } from './BulkOutcome';
import { countOf } from './bulk';
import { choose, move } from './choice';
import { experimentsOf, type Filter, readFilter, select, writeFilter } from './filter';
import { Filters } from './Filters';
import { JobTable } from './JobTable';
import css from './jobs.module.css';
import type { JobTable as Table } from './jobsQuery';

const HEADER = 52; // the height of the page's own head

let lastCurrent: string | null = null; // Who comes back from a job finds its row again.

export function JobList({ table }: { table: Table }) {
  const [query, setQuery] = useSearchParams();
  const filter = useMemo(() => readFilter(query), [query]);
  const asked = useDeferredValue(filter);
  const { jobs } = table;
  const experiments = useMemo(() => experimentsOf(jobs), [jobs]);
  const { shown, counts } = useMemo(() => select(jobs, asked, Date.now()), [jobs, asked]);
  const [current, setCurrent] = useState(lastCurrent);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set<string>());
  const [outcome, setOutcome] = useState<Done | null>(null);
  const anchor = useRef<string | null>(null);
  const search = useRef<HTMLInputElement>(null);
  const page = useRef<HTMLDivElement>(null);
  const top = useElementSize<HTMLDivElement>();
  const [, go] = useLocation();

  // The page that follows begins at its top.
  useLayoutEffect(() => () => window.scrollTo(0, 0), []);
  const onFilter = (change: Partial<Filter>) => {
    setQuery((now) => writeFilter(now, { ...readFilter(now), ...change }), { replace: true });
  };
  const onCurrent = useCallback((job: string | null) => {
    lastCurrent = job;
    setCurrent(job);
  }, []);
  const order = useRef(shown);
  order.current = shown;
  const onChoose = useCallback((job: string, range: boolean) => {
    const from = range ? anchor.current : null; // The ref changes before the update below is computed.
    anchor.current = job;
    setChosen((now) => choose(now, order.current, job, from));
  }, []);
  // What a filter hides stays chosen for later, but nothing is done to it.
  const shownChosen = useMemo(() => shown.filter((job) => chosen.has(job.id)), [shown, chosen]);
  const clear = () => setChosen(new Set());
  const chooseAll = () => {
    setChosen(shownChosen.length === shown.length ? new Set() : new Set(shown.map((job) => job.id)));
  };
  const onDone = (done: Done) => {
    setOutcome(done);
    setChosen(new Set(done.failed.map(({ job }) => job.id)));
  };

  const focusRows = () => page.current?.querySelector<HTMLElement>('[data-jobs]')?.focus({ preventScroll: true });
  const step = (rows: number) => {
    onCurrent(move(shown, current, rows));
    focusRows();
  };
  useKeys({
    '/': () => search.current?.focus(),
    ArrowDown: () => step(1),
    j: () => step(1),
    ArrowUp: () => step(-1),
    k: () => step(-1),
    Enter: () => current && shown.some((job) => job.id === current) && go(`/jobs/${encodeURIComponent(current)}`),
    x: () => current && shown.some((job) => job.id === current) && onChoose(current, false),
    X: () => current && shown.some((job) => job.id === current) && onChoose(current, true),
    Escape: () => (shownChosen.length > 0 ? clear() : onFilter({ search: '', states: [], experiment: '' })),
  });

  const all = countOf(jobs.length);
  const count = shown.length === jobs.length ? all : `${shown.length.toLocaleString('en-US')} of ${all}`;
  return (
    <div ref={page}>
      <div className={css.top} ref={top.ref}>
        <Filters
          filter={filter}
          onFilter={onFilter}
          counts={counts}
          experiments={experiments}
          search={search}
          onLeave={() => step(0)}
        />
        <div className={css.line}>
          <Text size="sm" role="status">
            {count}
            {table.wholeAt === 0 && '; older ones are loading'}
          </Text>
          {shownChosen.length > 0 && <BulkBar chosen={shownChosen} onClear={clear} onDone={onDone} />}
          {shownChosen.length === 0 && <Hint />}
        </div>
        {outcome && <BulkOutcome outcome={outcome} onClose={() => setOutcome(null)} />}
      </div>
      {shown.length === 0 ? (
        <Empty title="No job matches">
          <Button variant="light" onClick={() => onFilter({ search: '', states: [], experiment: '' })}>
            Show all jobs
          </Button>
        </Empty>
      ) : (
        <JobTable
          shown={shown}
          filter={filter}
          onFilter={onFilter}
          current={current}
          onCurrent={onCurrent}
          chosen={chosen}
          onChoose={onChoose}
          onChooseAll={chooseAll}
          headTop={HEADER + Math.round(top.height)}
        />
      )}
    </div>
  );
}

function Hint() {
  return (
    <Text size="xs" c="dimmed" className={css.hint}>
      <Kbd size="xs">/</Kbd> search <Kbd size="xs">j</Kbd> <Kbd size="xs">k</Kbd> move{' '}
      <Kbd size="xs">x</Kbd> choose{' '}
      <Kbd size="xs">Enter</Kbd> open <Kbd size="xs">Esc</Kbd> clear
    </Text>
  );
}
