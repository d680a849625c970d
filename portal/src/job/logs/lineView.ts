// The rows of a store that are of interest, in order, kept up to date as lines come, change and leave.
import type { LineStore, Source } from './lineStore';

export class LineView {
  /** The numbers of the rows. It is written in place: `version` of the feed tells when. */
  readonly rows: number[] = [];
  private from: number; // what has been taken in: the rows from here
  private to: number; // to before here

  constructor(
    private readonly store: LineStore,
    private readonly accepts: (row: number) => boolean,
  ) {
    this.from = store.first;
    this.to = store.first;
    this.update(new Set());
  }

  /** Takes in what has come to the store; `changed` are rows that were written anew. */
  update(changed: ReadonlySet<number>): void {
    const { store, rows } = this;
    const gone = placeOf(rows, store.first);
    if (gone > 0) rows.splice(0, gone);
    const kept = placeOf(rows, store.end);
    if (kept < rows.length) rows.length = kept;
    for (const row of changed) {
      if (row < Math.max(this.from, store.first) || row >= Math.min(this.to, store.end)) continue;
      const place = placeOf(rows, row);
      const had = rows[place] === row;
      const has = this.accepts(row);
      if (had && !has) rows.splice(place, 1);
      if (has && !had) rows.splice(place, 0, row);
    }
    if (store.first < this.from) {
      const later = rows.splice(0);
      this.take(store.first, Math.min(this.from, store.end));
      for (const row of later) rows.push(row);
    }
    this.take(Math.max(this.to, store.first), store.end);
    this.from = store.first;
    this.to = store.end;
  }

  private take(from: number, to: number): void {
    for (let row = from; row < to; row += 1) if (this.accepts(row)) this.rows.push(row);
  }
}

/** The place of the first of `rows`, which ascend, that is not before `row`. */
export function placeOf(rows: readonly number[], row: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle]! < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Choice {
  /** One rank, or all. */
  rank: number | null;
  /** One of stdout and stderr, or all. */
  source: Source | null;
}

/** Whether a row is among what is chosen; states always are. */
export function chosen(store: LineStore, { rank, source }: Choice): (row: number) => boolean {
  return (row) => {
    const of = store.source(row);
    if (of === 'state') return true;
    return (rank === null || store.rank(row) === rank) && (source === null || of === source);
  };
}

/** A search for a text, whatever its case; null: there is none. */
export function searchFor(text: string): RegExp | null {
  return text ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi') : null;
}

export function matches(store: LineStore, search: RegExp): (row: number) => boolean {
  const one = new RegExp(search.source, 'i');
  return (row) => one.test(store.plain(row));
}

const TRACEBACK = 'Traceback (most recent call last)';
const CHAINED = /^(During handling of the above exception|The above exception was the direct cause)/;
const FEW = 20;
const MANY = 1_000; // rows before a traceback that are none of its chain, or of stderr without one

export interface CauseRow {
  /** Null: it has printed nothing that is kept. */
  row: number | null;
  /** Whether rows before those that are kept would change it. */
  isSure: boolean;
}

/**
 * The row in which what made a job fail begins: the first line of the last traceback of `rank` (of the first of a
 * chain), or of its last lines to stderr, or its last line.
 */
export function causeRow(store: LineStore, rank: number): CauseRow {
  const errors: number[] = [];
  let last: number | null = null;
  let seen = 0;
  let traceback: number | null = null;
  for (let row = store.end - 1; row >= store.first && seen < MANY; row -= 1) {
    if (store.rank(row) !== rank || store.source(row) === 'state') continue;
    last ??= row;
    // What a rank prints to stdout may come long after what it has printed to stderr later.
    if (traceback !== null || store.source(row) !== 'stdout') seen += 1;
    if (store.source(row) === 'stdout') continue;
    const text = store.plain(row);
    if (traceback !== null && text.trim() && !CHAINED.test(text)) {
      // What stands between two tracebacks of a chain is its sentence; anything else ends it.
      if (!isWithinChain(store, errors)) return { row: traceback, isSure: true };
      traceback = null;
    }
    errors.push(row);
    if (!text.includes(TRACEBACK)) continue; // It may stand behind a progress bar.
    traceback = row;
    seen = 0;
  }
  const isSure = store.before === null || seen >= MANY;
  return { row: traceback ?? errors[Math.min(errors.length, FEW) - 1] ?? last, isSure };
}

/** Whether the newest of `errors` (which descend) is the sentence of a chain, blank lines aside. */
function isWithinChain(store: LineStore, errors: readonly number[]): boolean {
  for (let at = errors.length - 1; at >= 0; at -= 1) {
    const text = store.plain(errors[at]!);
    if (CHAINED.test(text)) return true;
    if (text.trim()) return false;
  }
  return false;
}
