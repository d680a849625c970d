// The code of jobs, and how that of one differs from that of another.
import { queryOptions } from '@tanstack/react-query';
import { errorOf, noAnswer } from '../../api/client';

export interface CodeFile {
  path: string;
  bytes: number;
  text: string | null; // null: it is binary or large
}

export interface JobCode {
  snapshot: string;
  files: CodeFile[];
  left_out: number; // files that are not in the list
}

/** `folder`: of a pipeline or sweep, which of its code folders. */
export const codeQuery = (job: string, folder: string | null) =>
  queryOptions({
    queryKey: ['code', job, folder],
    queryFn: async ({ signal }): Promise<JobCode> => {
      const query = folder ? `?folder=${encodeURIComponent(folder)}` : '';
      const response = await fetch(`/v1/jobs/${encodeURIComponent(job)}/code${query}`, { signal }).catch((error) => {
        if (signal.aborted) throw error;
        throw noAnswer();
      });
      const body: unknown = await response.json().catch(() => undefined);
      if (!response.ok) throw errorOf(response.status, body);
      return body as JobCode;
    },
    staleTime: Infinity,
    gcTime: 60_000,
  });

export interface Change {
  path: string;
  kind: 'added' | 'removed' | 'changed';
  before: CodeFile | null;
  after: CodeFile | null;
}

/** What differs, sorted by path. Of two binary files only their sizes are known. */
export function changesOf(before: CodeFile[], after: CodeFile[]): Change[] {
  const former = new Map(before.map((file) => [file.path, file]));
  const changes: Change[] = [];
  for (const file of after) {
    const old = former.get(file.path);
    former.delete(file.path);
    if (!old) changes.push({ path: file.path, kind: 'added', before: null, after: file });
    else if (old.bytes !== file.bytes || old.text !== file.text) {
      changes.push({ path: file.path, kind: 'changed', before: old, after: file });
    }
  }
  for (const file of former.values()) changes.push({ path: file.path, kind: 'removed', before: file, after: null });
  return changes.sort((a, b) => (a.path < b.path ? -1 : 1));
}
