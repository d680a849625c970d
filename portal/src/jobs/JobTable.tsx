// The table of the jobs that are shown. Only the rows within the window are elements of the page.
import { useMediaQuery } from '@mantine/hooks';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { JobSummary } from '../api/client';
import { useNow } from '../parts/useNow';
import type { Filter, SortKey } from './filter';
import { JobRow, rowId } from './JobRow';
import css from './jobs.module.css';

export interface TableProps {
  shown: JobSummary[];
  filter: Filter;
  onFilter(change: Partial<Filter>): void;
  current: string | null;
  onCurrent(job: string): void;
  chosen: ReadonlySet<string>;
  onChoose(job: string, range: boolean): void;
  onChooseAll(): void;
  /** How far below the window's edge the head of the table stays when rows scroll, in pixels. */
  headTop: number;
}

const HEAD = 32;

const COLUMNS: { label: string; className?: string; sort?: SortKey; right?: boolean }[] = [
  { label: 'Name', sort: 'name' },
  { label: 'State', className: css.state, sort: 'state' },
  { label: 'Experiment', className: css.experiment },
  { label: 'Nodes', className: css.nodes, right: true },
  { label: 'Submitted', sort: 'newest', right: true },
  { label: 'Ran', sort: 'ran', right: true },
  { label: 'Command', className: css.command },
  { label: 'Reason' },
];

export function JobTable(props: TableProps) {
  const { shown, current, chosen, headTop } = props;
  const now = useNow(true);
  const cards = useMediaQuery('(max-width: 767px)', undefined, { getInitialValueInEffect: false });
  const rows = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  // What is above the rows may grow and shrink with any change of the page.
  useLayoutEffect(() => {
    if (rows.current) setMargin(Math.round(rows.current.getBoundingClientRect().top + window.scrollY));
  });
  const virtual = useWindowVirtualizer({
    count: shown.length,
    estimateSize: () => (cards ? 58 : 34),
    overscan: 12,
    scrollMargin: margin,
    scrollPaddingStart: cards ? 60 : headTop + HEAD,
    scrollPaddingEnd: 60,
    getItemKey: (index) => shown[index]!.id,
  });
  useEffect(() => virtual.measure(), [virtual, cards]);

  const order = useRef(shown);
  order.current = shown;
  const first = useRef(true);
  useEffect(() => {
    const index = order.current.findIndex((job) => job.id === current);
    if (index >= 0) virtual.scrollToIndex(index, { align: first.current ? 'center' : 'auto' });
    first.current = false;
  }, [virtual, current]);

  const items = virtual.getVirtualItems();
  const visible = items.some(({ index }) => shown[index]!.id === current);
  return (
    <div
      role="grid"
      aria-label="Jobs"
      aria-rowcount={shown.length + 1}
      aria-multiselectable
      aria-activedescendant={visible && current ? rowId(current) : undefined}
      tabIndex={0}
      className={css.grid}
      data-jobs
      style={{ '--jobs-head-top': `${headTop}px` } as React.CSSProperties}
    >
      <Head {...props} />
      <div role="rowgroup" ref={rows} className={css.rows} style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, key, start }) => {
          const job = shown[index]!;
          return (
            <JobRow
              key={key}
              job={job}
              index={index}
              offset={start - margin}
              now={now}
              current={job.id === current}
              chosen={chosen.has(job.id)}
              onCurrent={props.onCurrent}
              onChoose={props.onChoose}
            />
          );
        })}
      </div>
    </div>
  );
}

function Head({ shown, chosen, filter, onFilter, onChooseAll }: TableProps) {
  const some = shown.some((job) => chosen.has(job.id));
  const all = some && shown.every((job) => chosen.has(job.id));
  return (
    <div role="rowgroup" className={css.headGroup}>
      <div role="row" aria-rowindex={1} className={css.head}>
        <div role="columnheader" className={css.check}>
          <input
            type="checkbox"
            aria-label="Choose all that are shown"
            checked={all}
            ref={(box) => {
              if (box) box.indeterminate = some && !all;
            }}
            onChange={onChooseAll}
          />
        </div>
        {COLUMNS.map(({ label, className = '', sort, right }) => (
          <div
            key={label}
            role="columnheader"
            className={`${css.cell} ${className} ${right ? css.right : ''}`}
            aria-sort={sort && filter.sort === sort ? directionOf(filter) : undefined}
          >
            {sort ? <SortButton label={label} sort={sort} filter={filter} onFilter={onFilter} /> : label}
          </div>
        ))}
      </div>
    </div>
  );
}

interface SortProps extends Pick<TableProps, 'filter' | 'onFilter'> {
  label: string;
  sort: SortKey;
}

function SortButton({ label, sort, filter, onFilter }: SortProps) {
  const now = filter.sort === sort;
  const arrow = now ? (directionOf(filter) === 'ascending' ? ' ▲' : ' ▼') : '';
  const click = () => onFilter(now ? { reverse: !filter.reverse } : { sort, reverse: false });
  return (
    <button type="button" className={css.sort} onClick={click}>
      {label}
      <span aria-hidden>{arrow}</span>
    </button>
  );
}

/** Names and states begin with the first, times and durations with the largest. */
function directionOf({ sort, reverse }: Filter): 'ascending' | 'descending' {
  return (sort === 'name' || sort === 'state') !== reverse ? 'ascending' : 'descending';
}
