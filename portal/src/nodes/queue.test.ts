import { expect, it } from 'vitest';
import type { JobSummary } from '../api/client';
import { mountCommand, type FileServer } from './fileServer';
import { inOrder } from './queue';

it('puts a high priority first, and of one priority the earlier job', () => {
  const job = (id: string, sequence: number, priority: string) => ({ id, sequence, priority }) as JobSummary;
  const jobs = [job('d', 4, 'normal'), job('c', 3, 'low'), job('b', 2, 'high'), job('a', 1, 'normal')];
  expect(inOrder(jobs).map(({ id }) => id)).toEqual(['b', 'a', 'd', 'c']);
});

it('says how a file server is mounted', () => {
  const server = { name: 'photos', address: '10.0.0.5', port: 2049, access: 'read_only' } as FileServer;
  expect(mountCommand(server)).toBe('mount -t nfs4 -o ro 10.0.0.5:/photos /mnt/photos');
  expect(mountCommand({ ...server, port: 2050, access: 'read_write' })).toBe(
    'mount -t nfs4 -o port=2050 10.0.0.5:/photos /mnt/photos',
  );
});
