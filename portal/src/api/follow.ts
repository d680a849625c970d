// Follows a job: state changes and output as they come (GET /v1/jobs/{job}/stream), each line once, over a
// service that goes away and comes back.
import { errorOf, noAnswer, type Schemas, ServiceError } from './client';

export type FollowLine = Schemas['FollowLine'];

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

/** Follows what comes after the line with cursor `from`, the job's first line without one, until `signal` aborts. */
export async function follow(job: string, follower: Follower, signal: AbortSignal, from = ''): Promise<void> {
  let cursor = from;
  let wait = FIRST_WAIT;
  const see = (lines: FollowLine[]) => {
    wait = FIRST_WAIT;
    const told = lines.filter((line) => line.type !== 'alive');
    const last = told.at(-1);
    if (last) cursor = last.cursor;
    if (told.length > 0) follower.onLines(told);
  };
  while (!signal.aborted) {
    try {
      await readStream(job, cursor, see, () => follower.onContact(null), signal);
      follower.onEnd();
      return;
    } catch (error) {
      if (signal.aborted) return;
      follower.onContact((error instanceof ServiceError ? error : noAnswer()).message);
      if (error instanceof ServiceError && error.status >= 400 && error.status < 500) return;
    }
    await pause(wait, signal);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}

async function readStream(
  job: string,
  cursor: string,
  see: (lines: FollowLine[]) => void,
  onOpen: () => void,
  signal: AbortSignal,
): Promise<void> {
  const silence = new AbortController();
  const stop = () => silence.abort();
  signal.addEventListener('abort', stop);
  let timer = setTimeout(stop, PATIENCE);
  try {
    const query = cursor ? `?cursor=${encodeURIComponent(cursor)}` : '';
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
