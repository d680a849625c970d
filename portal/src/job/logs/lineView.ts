// The rows of a store that are of interest, in order, kept up to date as lines come, change and leave.
import type { LineStore, Source } from './lineStore';

export class LineView {
  /** The numbers of the rows. It is written in place: `version` of the feed tells when. */
  readonly rows: number[] = [];
  private seen: number;

  constructor(
    private readonly store: LineStore,
    private readonly accepts: (row: number) => boolean,
  ) {
    this.seen = store.first;
    this.update(new Set());
  }

  /** Takes in what has come to the store; `changed` are rows that were written anew. */
  update(changed: ReadonlySet<number>): void {
    const { store, rows } = this;
    const gone = placeOf(rows, store.first);
    if (gone > 0) rows.splice(0, gone);
    for (const row of changed) {
      if (row < store.first || row >= this.seen) continue;
      const place = placeOf(rows, row);
      const had = rows[place] === row;
      const has = this.accepts(row);
      if (had && !has) rows.splice(place, 1);
      if (has && !had) rows.splice(place, 0, row);
    }
    for (let row = Math.max(this.seen, store.first); row < store.end; row += 1) {
      if (this.accepts(row)) rows.push(row);
    }
    this.seen = store.end;
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

/**
 * The row in which what made a job fail begins: the first line of the last traceback of `rank` (of the first of a
 * chain), or of its last lines to stderr, or its last line; null: it has printed nothing that is kept.
 */
export function causeRow(store: LineStore, rank: number): number | null {
  const errors: number[] = [];
  let last: number | null = null;
  let traceback: number | null = null;
  for (let row = store.end - 1; row >= store.first; row -= 1) {
    if (store.rank(row) !== rank || store.source(row) === 'state') continue;
    last ??= row;
    if (store.source(row) === 'stdout') continue;
    const text = store.plain(row);
    if (traceback !== null && text.trim() && !CHAINED.test(text)) {
      // What stands between two tracebacks of a chain is its sentence; anything else ends it.
      if (!isWithinChain(store, errors)) return traceback;
      traceback = null;
    }
    errors.push(row);
    if (text.includes(TRACEBACK)) traceback = row; // It may stand behind a progress bar.
  }
  if (traceback !== null) return traceback;
  return errors[Math.min(errors.length, FEW) - 1] ?? last;
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
