// How a node mounts a file server of tutti's (docs/data/file-server.md).
import type { Schemas } from '../api/client';

export type FileServer = Schemas['FileServer'];

const USUAL_PORT = 2049;

/** The command that mounts it. Its options say what the rule would not: that it is read only, another port. */
export function mountCommand({ name, address, port, access }: FileServer): string {
  const options = [
    ...(access === 'read_only' ? ['ro'] : []),
    ...(port !== USUAL_PORT ? [`port=${port}`] : []),
  ];
  const said = options.length > 0 ? ` -o ${options.join(',')}` : '';
  return `mount -t nfs4${said} ${address}:/${name} /mnt/${name}`;
}
