// What a file of a job is, by its name and its first bytes: how it is shown.

export type Kind = 'image' | 'table' | 'json' | 'events' | 'text';

const IMAGES: Record<string, string> = {
  png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', bmp: 'image/bmp',
};

function extension(path: string): string {
  return /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? '';
}

export function kindOf(path: string): Kind {
  if (/(^|[./])events\.out\.tfevents\.[^/]*$/.test(path)) return 'events';
  const end = extension(path);
  if (end in IMAGES) return 'image';
  if (end === 'csv' || end === 'tsv') return 'table';
  return end === 'json' || end === 'ipynb' ? 'json' : 'text';
}

/** Of an image alone. An SVG is none: it is a document that may hold scripts, and is shown as text. */
export function imageType(path: string): string {
  return IMAGES[extension(path)] ?? 'application/octet-stream';
}

/** The text that the bytes are in UTF-8, or null: they are no text. `whole`: they are not the beginning of more. */
export function textOf(bytes: Uint8Array, whole: boolean): string | null {
  if (bytes.subarray(0, 8192).includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !whole });
  } catch {
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
    const broken = text.split('\uFFFD').length - 1;
    return broken * 20 > text.length ? null : text;
  }
}

/** The address of a job's file; its bytes come as an attachment. */
export function fileAddress(job: string, path: string): string {
  return `/v1/jobs/${encodeURIComponent(job)}/files/${path.split('/').map(encodeURIComponent).join('/')}`;
}
