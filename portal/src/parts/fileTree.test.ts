import { describe, expect, it } from 'vitest';
import { treeRows } from './fileTree';

const FILES = [
  { path: 'logs/rank-10.stdout', bytes: 5 },
  { path: 'logs/rank-2.stdout', bytes: 7 },
  { path: 'readme', bytes: 1 },
  { path: 'outputs/model/a.bin', bytes: 100 },
];

describe('treeRows', () => {
  it('puts folders first and numbers in their order', () => {
    expect(treeRows(FILES, () => true).map((row) => row.path)).toEqual([
      'logs', 'logs/rank-2.stdout', 'logs/rank-10.stdout', 'outputs', 'outputs/model', 'outputs/model/a.bin', 'readme',
    ]);
  });

  it('adds up what a closed folder holds', () => {
    const [logs] = treeRows(FILES, () => false);
    expect(logs).toMatchObject({ path: 'logs', bytes: 12, files: 2, open: false, depth: 0 });
  });

  it('takes a path that begins with a slash or a name of Object for what it is', () => {
    expect(treeRows([{ path: '__proto__/constructor', bytes: 1 }], () => true).map((row) => row.name)).toEqual([
      '__proto__', 'constructor',
    ]);
  });
});
