import { useEffect, useMemo } from 'react';
import type { Feed } from './feed';
import { LineView } from './lineView';

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
