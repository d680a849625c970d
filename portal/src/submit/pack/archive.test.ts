// @vitest-environment node
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tarOf } from './tar';
import { zstdFrame } from './zstd';

const has = (program: string) => spawnSync(program, ['--version']).status === 0;
const bytes = (text: string) => new TextEncoder().encode(text);
const LONG = 'deep/'.repeat(50) + 'file.py'; // 257 bytes: more than ustar holds
const SPLIT = `${'d'.repeat(90)}/${'f'.repeat(90)}.py`;

describe('zstdFrame', () => {
  it('of nothing is one empty last block', () => {
    expect([...zstdFrame(new Uint8Array())]).toEqual([0x28, 0xb5, 0x2f, 0xfd, 0, 0x38, 1, 0, 0]);
  });

  it('says of the last block alone that it is the last', () => {
    const frame = zstdFrame(new Uint8Array(128 * 1024 + 1));
    expect([...frame.subarray(6, 9)]).toEqual([0, 0, 0x10]);
    expect([...frame.subarray(-4)]).toEqual([9, 0, 0, 0]);
  });

  it.skipIf(!has('zstd'))('is read by zstd, at every size around the ends of blocks', () => {
    for (const size of [0, 1, 128 * 1024 - 1, 128 * 1024, 128 * 1024 + 1, 3_000_000]) {
      const content = Uint8Array.from({ length: size }, (_, index) => (index * 31 + (index >> 8)) & 0xff);
      const input = zstdFrame(content);
      const read = execFileSync('zstd', ['-d', '-q', '-c'], { input, maxBuffer: 1 << 23 });
      expect(Buffer.compare(read, content)).toBe(0);
    }
  });
});

describe('tarOf', () => {
  it('is the same whatever the order of the files', () => {
    const a = { name: 'a.py', bytes: bytes('a'), executable: false };
    const b = { name: 'b/c.py', bytes: bytes('c'), executable: false };
    expect(tarOf([a, b])).toEqual(tarOf([b, a]));
  });

  it.skipIf(!has('tar'))('is unpacked by tar: long names, other alphabets, modes, folders', () => {
    const files = [
      { name: 'train.py', bytes: bytes('print(1)\n'), executable: false },
      { name: 'run.sh', bytes: bytes('#!/bin/sh\n'), executable: true },
      { name: 'größe/日本.txt', bytes: bytes('x'.repeat(512)), executable: false },
      { name: LONG, bytes: bytes('long'), executable: false },
      { name: SPLIT, bytes: bytes('split'), executable: false },
      { name: 'empty', bytes: new Uint8Array(), executable: false },
    ];
    const folder = mkdtempSync(join(tmpdir(), 'tar-'));
    try {
      const unpacked = spawnSync('tar', ['-x', '-C', folder], { input: tarOf(files) });
      // GNU tar takes names for bytes anyway, and says that it does not know the header that asks for it.
      expect(unpacked.stderr.toString().replace(/.*keyword 'hdrcharset'\n/g, '')).toBe('');
      expect(unpacked.status).toBe(0);
      for (const file of files) {
        expect(Buffer.compare(readFileSync(join(folder, file.name)), file.bytes)).toBe(0);
        expect((statSync(join(folder, file.name)).mode & 0o100) !== 0).toBe(file.executable);
      }
      const names = execFileSync('tar', ['-t', '--quoting-style=literal'], { input: tarOf(files) }).toString();
      expect(names.split('\n').slice(0, 2).join(' ')).toMatch(/^d+\/ d+\/f+\.py$/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
