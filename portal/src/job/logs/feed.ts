// A job's output as it comes. Lines go into the store at once, which bounds what is kept however long the page
// is not drawn; who shows them is told at most some times a second.
import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { follow, type FollowLine } from '../../api/follow';
import { LineStore } from './lineStore';
import { LineView } from './lineView';

const APART = 120; // milliseconds between two times that the page is drawn anew
const HIDDEN = 30_000; // milliseconds after which a page that is not seen gives its connection back

export class Feed {
  readonly store = new LineStore();
  version = 0;
  /** Why the service is not reached now, or null. */
  away: string | null = null;
  /** Whether all that there will be is there. */
  ended = false;
  private readonly readers = new Set<(changed: ReadonlySet<number>) => void>();
  private readonly listeners = new Set<() => void>();
  private cursor = '';
  private told = 0;
  private frame = 0;
  private stream: AbortController | null = null;

  constructor(private readonly job: string) {}

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
      else if (!this.stream) this.open();
    };
    document.addEventListener('visibilitychange', onVisibility);
    this.open();
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibility);
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      this.close();
    };
  }

  private open(): void {
    if (this.ended) return;
    this.stream = new AbortController();
    const { signal } = this.stream;
    const follower = {
      onLines: (lines: FollowLine[]) => {
        if (signal.aborted) return;
        const last = lines.at(-1)!;
        if (last.type !== 'alive') this.cursor = last.cursor;
        this.store.add(lines);
        this.tell();
      },
      onContact: (away: string | null) => {
        this.away = away;
        this.tell();
      },
      onEnd: () => {
        this.ended = true;
        this.tell();
      },
    };
    void follow(this.job, follower, signal, this.cursor);
  }

  private close(): void {
    this.stream?.abort();
    this.stream = null;
  }

  private tell(): void {
    if (this.frame) return;
    const draw = (now: number) => {
      if (now - this.told < APART) {
        this.frame = requestAnimationFrame(draw);
        return;
      }
      this.frame = 0;
      this.told = now;
      this.version += 1;
      const changed = this.store.takeChanged();
      for (const reader of this.readers) reader(changed);
      for (const listener of this.listeners) listener();
    };
    this.frame = requestAnimationFrame(draw);
  }
}

/** The output of `job`, followed while the page shows it. */
export function useFeed(job: string): Feed {
  const feed = useMemo(() => new Feed(job), [job]);
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
