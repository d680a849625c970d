// What a page shows, kept in its address, so that a link shows the same.
import { useCallback } from 'react';
import { useSearchParams } from 'wouter';
import type { Range } from './points';

export type Changes = Record<string, string | number | null>;

type SetView = (changes: Changes, options?: { push: boolean }) => void;

/**
 * The parts of the address's query, and what changes some of them: null and "" take a part away. With `push` the
 * browser's button "Back" leads to the view before.
 */
export function useView(): [URLSearchParams, SetView] {
  const [view, setSearch] = useSearchParams();
  const setView = useCallback(
    (changes: Changes, { push } = { push: false }) =>
      setSearch(
        (now) => {
          const next = new URLSearchParams(now);
          for (const [name, value] of Object.entries(changes)) {
            if (value === null || value === '') next.delete(name);
            else next.set(name, String(value));
          }
          return next;
        },
        { replace: !push },
      ),
    [setSearch],
  );
  return [view, setView];
}

/** The members of a list "a,b", each once. */
export function listed(text: string | null): string[] {
  return [...new Set((text ?? '').split(',').filter(Boolean))];
}

/** "from..to", as a range; null if it is none. */
export function rangeIn(text: string | null): Range | null {
  const [from, to] = (text ?? '').split('..').map((part) => (part === '' ? NaN : Number(part)));
  return from !== undefined && to !== undefined && to > from ? [from, to] : null;
}

export function rangeText(range: Range | null): string | null {
  if (!range) return null;
  const digits = Math.max(0, Math.ceil(3 - Math.log10(range[1] - range[0])));
  return range.map((end) => end.toFixed(Math.min(6, digits))).join('..');
}

/** How strongly curves are smoothed: 0 to 0.99. */
export function smoothingIn(view: URLSearchParams): number {
  const weight = Number(view.get('smooth') ?? 0);
  return weight > 0 ? Math.min(weight, 0.99) : 0;
}
