// Reads a job's state changes and output: as they come (GET /v1/jobs/{job}/stream), each line once, over a service that
// goes away and comes back; and in pages from the end upwards (GET /v1/jobs/{job}/lines).
import { answer, errorOf, noAnswer, type Schemas, service, ServiceError } from './client';
import { isRefused } from './queries';

export type FollowLine = Schemas['FollowLine'];
export type Page = Schemas['Lines'];

export interface Follower {
  /** Called with the lines that have come, many at once. */
  onLines(lines: FollowLine[]): void;
  /** Called when the service goes away (the reason) and when it is back (null). */
  onContact(away: string | null): void;
  /** Called once: the job has ended and all of its lines have come. */
  onEnd(): void;
}

const PATIENCE = 25_000; // milliseconds: the service says that it is alive every ten seconds
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** The newest lines, `limit` at most, of those up to the one with cursor `before`, or of all. */
export function linesBefore(job: string, before: string | null, limit: number, signal: AbortSignal): Promise<Page> {
  const query = { limit, ...(before === null ? {} : { before }) };
  return answer(service.GET('/v1/jobs/{job}/lines', { params: { path: { job }, query }, signal }));
}

/**
 * Gives `take` the lines after the one with cursor `after` ("": all of them), many at once, until it wants no more or
 * there are none now; returns whether there are none.
 */
export async function linesAfter(
  job: string,
  after: string,
  take: (lines: FollowLine[]) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const enough = new AbortController();
  const see = (lines: FollowLine[]) => {
    if (!enough.signal.aborted && !take(lines)) enough.abort();
  };
  try {
    await readStream(job, after, see, () => undefined, AbortSignal.any([signal, enough.signal]), false);
  } catch (error) {
    if (!enough.signal.aborted || signal.aborted) throw error;
  }
  return !enough.signal.aborted;
}

/**
 * Does `what` until it works, over a service that goes away and comes back, of which `onContact` is told. Throws what
 * the service refuses, and where `signal` aborts. `what` calls what it is given when it gets on.
 */
export async function persist<T>(
  what: (gotOn: () => void) => Promise<T>,
  onContact: (away: string | null) => void,
  signal: AbortSignal,
): Promise<T> {
  let wait = FIRST_WAIT;
  for (;;) {
    try {
      return await what(() => (wait = FIRST_WAIT));
    } catch (error) {
      if (signal.aborted) throw error;
      onContact((error instanceof ServiceError ? error : noAnswer()).message);
      if (isRefused(error)) throw error;
    }
    await pause(wait, signal);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}

/** Follows what comes after the line with cursor `from`, the job's first line without one, until `signal` aborts. */
export async function follow(job: string, follower: Follower, signal: AbortSignal, from = ''): Promise<void> {
  let cursor = from;
  const readOn = (gotOn: () => void) => {
    const see = (lines: FollowLine[]) => {
      gotOn();
      const told = lines.filter((line) => line.type !== 'alive');
      const last = told.at(-1);
      if (last) cursor = last.cursor;
      if (told.length > 0) follower.onLines(told);
    };
    return readStream(job, cursor, see, () => follower.onContact(null), signal, true);
  };
  try {
    await persist(readOn, follower.onContact, signal);
  } catch {
    return; // The follower has been told.
  }
  follower.onEnd();
}

async function readStream(
  job: string,
  cursor: string,
  see: (lines: FollowLine[]) => void,
  onOpen: () => void,
  signal: AbortSignal,
  followed: boolean,
): Promise<void> {
  const silence = new AbortController();
  const stop = () => silence.abort();
  signal.addEventListener('abort', stop);
  let timer = setTimeout(stop, PATIENCE);
  try {
    const query = `?follow=${followed}&reports=false${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const response = await fetch(`/v1/jobs/${encodeURIComponent(job)}/stream${query}`, { signal: silence.signal });
    if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
    onOpen();
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(stop, PATIENCE);
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      see(lines.map((line) => JSON.parse(line) as FollowLine));
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    silence.abort(); // a reader that is left open would hold its connection
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
