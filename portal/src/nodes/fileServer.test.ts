import { expect, it } from 'vitest';
import { mountCommand, type FileServer } from './fileServer';

it('says how a file server is mounted', () => {
  const server = { name: 'photos', address: '10.0.0.5', port: 2049, access: 'read_only' } as FileServer;
  expect(mountCommand(server)).toBe('mount -t nfs4 -o ro 10.0.0.5:/photos /mnt/photos');
  expect(mountCommand({ ...server, port: 2050, access: 'read_write' })).toBe(
    'mount -t nfs4 -o port=2050 10.0.0.5:/photos /mnt/photos',
  );
});
