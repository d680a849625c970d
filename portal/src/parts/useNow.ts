import { useEffect, useState } from 'react';

/** The time in milliseconds, again each second while `live` and the page is seen. */
export function useNow(live: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!live) return undefined;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [live]);
  return now;
}
