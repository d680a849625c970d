// Packs code as the service's snapshots and sends those that it lacks.
import { errorOf, noAnswer, writeHeader } from '../api/client';
import { bytes as sizeOf } from '../parts/format';
import { tarOf, type TarFile } from './pack/tar';
import { zstdFrame } from './pack/zstd';
import { type Code, MOST_BYTES } from './plan';

/** Why the code cannot be sent from here; null if it can. */
export function whyNot(codes: Code[]): string | null {
  const size = codes.reduce((sum, code) => sum + code.bytes, 0);
  if (codes.length > 0 && !globalThis.crypto?.subtle) {
    return 'This browser packs code only on pages by https or on the service’s own machine. Use tutti job create.';
  }
  if (size <= MOST_BYTES) return null;
  return (
    `The code has ${sizeOf(size)}; from here at most ${sizeOf(MOST_BYTES)} can be sent. ` +
    'Name what is not needed in a file .amlignore, or use tutti run or tutti job create, which send more.'
  );
}

/** Sends the code; returns the snapshot of each folder by its absolute path. `say` is told what it does. */
export async function sendCode(codes: Code[], say: (text: string) => void): Promise<Record<string, string>> {
  const snapshots: Record<string, string> = {};
  for (const code of codes) {
    say(`Packing ${code.path} …`);
    const archive = zstdFrame(tarOf(await contentOf(code.files)));
    const name = `sha256:${await sha256(archive)}`;
    snapshots[code.key] = name;
    say(`Sending ${code.path}, ${sizeOf(archive.length)} …`);
    await put(name, archive);
  }
  return snapshots;
}

async function contentOf(files: Map<string, File>): Promise<TarFile[]> {
  const all: TarFile[] = [];
  for (const [name, file] of files) {
    const bytes = await bytesOf(name, file);
    // Browsers do not tell which files may be executed; scripts say so themselves.
    all.push({ name, bytes, executable: bytes[0] === 0x23 && bytes[1] === 0x21 });
  }
  return all;
}

async function bytesOf(name: string, file: File): Promise<Uint8Array> {
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch {
    throw new Error(`${name} cannot be read: it has changed or gone since the folder was chosen. Choose it again.`);
  }
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function put(name: string, archive: Uint8Array<ArrayBuffer>): Promise<void> {
  const address = `/v1/snapshots/${name}`;
  const away = () => {
    throw noAnswer();
  };
  const has = await fetch(address, { method: 'HEAD' }).catch(away);
  if (has.ok) return;
  const headers = { ...writeHeader(), 'Content-Type': 'application/zstd' };
  const response = await fetch(address, { method: 'PUT', headers, body: archive }).catch(away);
  if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
}
