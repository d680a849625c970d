// Gets the beginning of a job's file.
import { queryOptions } from '@tanstack/react-query';
import { errorOf, noAnswer } from '../../api/client';
import { fileAddress } from './kind';

export const LIMIT = 2 * 1024 * 1024; // bytes that are shown of a file

export interface Beginning {
  bytes: Uint8Array<ArrayBuffer>;
  whole: boolean;
}

/** Reads at most LIMIT bytes and then lets go: the service sends files whole. */
async function fetchBeginning(job: string, path: string, signal: AbortSignal): Promise<Beginning> {
  const response = await fetch(fileAddress(job, path), { signal }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw noAnswer();
  });
  if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
  const bytes = new Uint8Array(LIMIT);
  let size = 0;
  const reader = response.body!.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: bytes.slice(0, size), whole: true };
    const taken = value.subarray(0, LIMIT - size);
    bytes.set(taken, size);
    size += taken.length;
    if (taken.length < value.length) {
      await reader.cancel();
      return { bytes, whole: false };
    }
  }
}

/** `size`: as the list of files says, so that a file that has grown is read again. */
export const beginningQuery = (job: string, path: string, size: number) =>
  queryOptions({
    queryKey: ['file', job, path, Math.min(size, LIMIT + 1)],
    queryFn: ({ signal }) => fetchBeginning(job, path, signal),
    staleTime: Infinity,
    gcTime: 30_000,
  });
