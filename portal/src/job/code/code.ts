// The code of jobs, and how that of one differs from that of another.
import { queryOptions } from '@tanstack/react-query';
import { answer, type Schemas, service } from '../../api/client';

export type JobCode = Schemas['Code'];
export type CodeFile = Schemas['CodeFile'];

/** `folder`: of a pipeline or sweep, which of its code folders. */
export const codeQuery = (job: string, folder: string | null) =>
  queryOptions({
    queryKey: ['code', job, folder],
    queryFn: () =>
      answer(
        service.GET('/v1/jobs/{job}/code', { params: { path: { job }, query: folder ? { folder } : {} } }),
      ),
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
