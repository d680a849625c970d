// A part of a job's output: its end, as it comes, or what is around a line; more of it is read before and behind. Lines
// go into the store at once, which bounds what is kept however long the page is not drawn; who shows them is told at
// most some times a second.
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { noAnswer, ServiceError } from '../../api/client';
import { follow, type FollowLine, linesAfter, linesBefore, persist } from '../../api/follow';
import { isRefused } from '../../api/queries';
import { LineStore } from './lineStore';
import { causeRow, LineView } from './lineView';

const APART = 120; // milliseconds between two times that the page is drawn anew
const HIDDEN = 30_000; // milliseconds after which a page that is not seen gives its connection back
const PAGE = 4_000; // lines
const MOST_AT_ONCE = 10_000; // lines, what the service gives
const NUMBER = /^\d{1,9}$/;

/** A part of the log as it is read. */
interface Part {
  store: LineStore;
  row: number | null;
  isAtEnd: boolean;
}

export class Feed {
  /** What is kept of the log; another one where another part of it is read. */
  store = new LineStore();
  version = 0;
  /** Why the service is not reached now, or null. */
  away: string | null = null;
  /** Whether all that there will be has been read. */
  ended = false;
  /** Whether anything has been read. */
  opened = false;
  /** Whether what comes is added: the newest line is kept. */
  isAtEnd = false;
  /** Whether more is being read before or behind what is kept. */
  isLoading = false;
  /** The line that was asked for last, and its row; null: there is none. */
  private target: { line: string; row: number | null } | null = null;
  private readonly readers = new Set<(changed: ReadonlySet<number>) => void>();
  private readonly listeners = new Set<() => void>();
  private told = 0;
  private frame = 0;
  private stream: AbortController | null = null;
  private reading = new AbortController(); // of a part of the log
  private more: Promise<void> | null = null;

  /** Begins at `line` as the address names it, or at the end. */
  constructor(
    private readonly job: string,
    private readonly line: string | null,
  ) {}

  /** Calls `reader` with the rows that were written anew before the page is drawn; returns how to end that. */
  read(reader: (changed: ReadonlySet<number>) => void): () => void {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Follows the job until the function that it returns is called. */
  start(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onVisibility = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => this.close(), HIDDEN);
      else if (!this.stream) this.follow();
    };
    document.addEventListener('visibilitychange', onVisibility);
    void this.open(this.line);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibility);
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      this.reading.abort();
      this.close();
    };
  }

  /** The row of a line: its number, counted from the first, or its cursor. Null: it is not kept, or there is none. */
  rowOf(line: string): number | null {
    if (this.target?.line !== line) {
      const row = NUMBER.test(line) ? this.store.numbered(Number(line)) : this.store.rowAt(line);
      if (row === null) return null;
      this.target = { line, row };
    }
    return this.store.kept(this.target.row);
  }

  /** Whether `open` has looked for the line. */
  hasSought(line: string): boolean {
    return this.target?.line === line;
  }

  /** Reads the log around `line`, or its end, in place of what is kept. */
  async open(line: string | null): Promise<void> {
    this.reading.abort();
    this.reading = new AbortController();
    const { signal } = this.reading;
    const part: Part = { store: new LineStore(), row: null, isAtEnd: true };
    try {
      await persist(() => this.readPart(line, part, signal), this.onContact, signal);
    } catch (error) {
      // A cursor that the service does not know is a line that there is not.
      if (!signal.aborted && line !== null && isRefused(error)) {
        await this.open(null);
        this.target = { line, row: null };
      }
      return;
    }
    this.close();
    this.store = part.store;
    this.isAtEnd = part.isAtEnd;
    this.target = line === null ? null : { line, row: part.row };
    this.opened = true;
    this.ended = false;
    this.away = null;
    this.draw();
    this.follow();
  }

  private async readPart(line: string | null, part: Part, signal: AbortSignal): Promise<void> {
    const store = (part.store = new LineStore());
    let most = PAGE;
    if (line !== null && NUMBER.test(line)) {
      store.beginsAfter(null);
      most = Number(line) + PAGE;
    } else {
      const page = await linesBefore(this.job, line, PAGE, signal);
      store.add(page.lines);
      store.beginsAfter(page.before);
      part.isAtEnd = line === null;
      if (line === null) return;
      part.row = store.rowAt(line) ?? store.kept(store.end - 1);
    }
    const enough = store.end + most;
    const take = (lines: FollowLine[]) => {
      store.add(lines);
      return store.end < enough;
    };
    part.isAtEnd = await linesAfter(this.job, store.after, take, signal);
    if (line !== null) part.row ??= store.numbered(Number(line));
  }

  /** Reads a page of what comes before what is kept. */
  readonly older = (limit = PAGE): Promise<void> =>
    this.readMore(async (store, signal) => {
      if (store.before === null) return;
      const page = await linesBefore(this.job, store.before, limit, signal);
      if (this.store !== store) return;
      const { end } = store;
      store.prepend(page.lines, page.before);
      if (store.end === end) return;
      this.close(); // The newest have left.
      this.isAtEnd = false;
      this.ended = false;
    });

  /** Reads a page of what comes behind what is kept. */
  readonly newer = (): Promise<void> =>
    this.readMore(async (store, signal) => {
      if (this.isAtEnd) return;
      let count = 0;
      const take = (lines: FollowLine[]) => {
        store.add(lines);
        return (count += lines.length) < PAGE;
      };
      const isAtEnd = await linesAfter(this.job, store.after, take, signal);
      if (this.store !== store) return;
      this.isAtEnd = isAtEnd;
      this.follow();
    });

  /** Reads all that comes before what is kept, as far as it can be kept. */
  readonly all = async (): Promise<void> => {
    const { store } = this;
    while (this.store === store && store.before !== null && !store.isFull) {
      await this.older(MOST_AT_ONCE);
      if (this.away) return;
    }
  };

  /** Finds where what made the job fail begins in what `rank` has printed; reads further back until that is sure. */
  async findCause(rank: number): Promise<number | null> {
    for (;;) {
      const { row, isSure } = causeRow(this.store, rank);
      if (isSure || this.store.isFull || this.away) {
        this.draw(); // so that the row is among those that are shown
        return row;
      }
      await this.older(MOST_AT_ONCE);
    }
  }

  private readMore(read: (store: LineStore, signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.reading;
    this.more ??= (async () => {
      this.isLoading = true;
      this.tell();
      try {
        await read(this.store, signal);
        this.away = null;
      } catch (error) {
        if (!signal.aborted) this.away = (error instanceof ServiceError ? error : noAnswer()).message;
      }
      this.isLoading = false;
      this.more = null;
      this.tell();
    })();
    return this.more;
  }

  private readonly onContact = (away: string | null): void => {
    this.away = away;
    this.tell();
  };

  private follow(): void {
    if (!this.opened || !this.isAtEnd || this.ended || this.stream) return;
    this.stream = new AbortController();
    const { signal } = this.stream;
    const { store } = this;
    const follower = {
      onLines: (lines: FollowLine[]) => {
        if (signal.aborted) return;
        store.add(lines);
        this.tell();
      },
      onContact: (away: string | null) => {
        if (!signal.aborted) this.onContact(away);
      },
      onEnd: () => {
        if (signal.aborted) return;
        this.ended = true;
        this.tell();
      },
    };
    void follow(this.job, follower, signal, store.after);
  }

  private close(): void {
    this.stream?.abort();
    this.stream = null;
  }

  private tell(): void {
    if (this.frame) return;
    const later = (now: number) => {
      if (now - this.told < APART) {
        this.frame = requestAnimationFrame(later);
        return;
      }
      this.frame = 0;
      this.told = now;
      this.draw();
    };
    this.frame = requestAnimationFrame(later);
  }

  private draw(): void {
    this.version += 1;
    const changed = this.store.takeChanged();
    for (const reader of this.readers) reader(changed);
    for (const listener of this.listeners) listener();
  }
}

/** The output of `job`, followed while the page shows it; it begins at `line`, or at its end. */
export function useFeed(job: string, line: string | null): Feed {
  const [first] = useState(line);
  const feed = useMemo(() => new Feed(job, first), [job, first]);
  useEffect(() => feed.start(), [feed]);
  useSyncExternalStore(feed.subscribe, () => feed.version);
  return feed;
}

/** The rows of `feed` that `accepts` takes, as they come; null where there is no such question. */
export function useRows(feed: Feed, accepts: ((row: number) => boolean) | null): LineView | null {
  const view = useMemo(() => accepts && new LineView(feed.store, accepts), [feed, accepts]);
  useEffect(() => {
    if (!view) return undefined;
    view.update(new Set()); // what came since the view was made
    return feed.read((changed) => view.update(changed));
  }, [feed, view]);
  return view;
}
