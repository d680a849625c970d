import { describe, expect, it } from 'vitest';
import { planOf } from './plan';

const folder = (files: Record<string, string>) => ({
  reading: 1,
  name: 'project',
  files: new Map(
    Object.entries(files).map(([path, text]) => {
      const file: Pick<File, 'size' | 'text'> = { size: text.length, text: async () => text };
      return [path, file as File];
    }),
  ),
});

describe('planOf', () => {
  it('takes the code folder from beside the job file, under its absolute path', async () => {
    const dropped = folder({ 'jobs/job.yml': '', 'src/a.py': 'abc', 'src/out/x': '', 'src/.amlignore': 'out', b: '' });
    const { codes, absent } = await planOf(dropped, 'jobs/job.yml', '/portal/project/jobs', 'code: ../src\n');
    expect(absent).toEqual([]);
    expect(codes).toHaveLength(1);
    expect(codes[0]).toMatchObject({ key: '/portal/project/src', bytes: 6, leftOut: [{ path: 'src/out/' }] });
    expect([...codes[0]!.files.keys()]).toEqual(['a.py', '.amlignore']);
  });

  it('takes all for ".", one file for a file, and each folder once', async () => {
    const dropped = folder({ 'job.yml': '', 'src/a.py': 'abc' });
    const text = 'jobs:\n  a: {code: .}\n  b: {code: ./}\n  c: {code: src/a.py}\n';
    const { codes } = await planOf(dropped, 'job.yml', '/p', text);
    expect(codes.map(({ key, files }) => [key, [...files.keys()]])).toEqual([
      ['/p', ['job.yml', 'src/a.py']], ['/p/src/a.py', ['a.py']],
    ]);
  });

  it('tells code that is not in the folder, and files that often hold secrets', async () => {
    const dropped = folder({ 'job.yml': '', '.env': 'KEY=1' });
    const text = 'code: ../other\njobs: {a: {code: none}, b: {code: .}}\n';
    const { codes, absent } = await planOf(dropped, 'job.yml', '/p', text);
    expect(absent).toEqual(['../other', 'none']);
    expect(codes[0]!.secrets).toEqual(['.env']);
  });
});
