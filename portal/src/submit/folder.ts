// A folder of the user's machine as browsers give it: by a dialog or dropped. Files are read only later.
import { looksLikeJob } from './yaml';

export interface Folder {
  reading: number; // which of those that the page has read: it may have changed since the last time
  name: string;
  files: Map<string, File>; // by paths within it
}

const MOST_FILES = 50_000;
let readings = 0;

export class TooMany extends Error {
  constructor() {
    super(`The folder has more than ${MOST_FILES.toLocaleString('en')} files. Use tutti job create for it.`);
  }
}

/** Of a dialog: the browser has listed all that is in the folder. */
export function folderOfDialog(list: FileList): Folder {
  if (list.length > MOST_FILES) throw new TooMany();
  const files = new Map<string, File>();
  for (const file of list) files.set(file.webkitRelativePath.replace(/^[^/]*\//, ''), file);
  return { reading: (readings += 1), name: list[0]?.webkitRelativePath.split('/')[0] ?? 'folder', files };
}

/** What was dropped. To be called within the event: its items are gone after it. */
export function entriesOf(items: DataTransferItemList): FileSystemEntry[] {
  return [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
}

/** One dropped folder is the folder; of several things it is what holds them. */
export async function folderOfEntries(entries: FileSystemEntry[]): Promise<Folder> {
  const files = new Map<string, File>();
  const single = entries.length === 1 && entries[0]!.isDirectory ? entries[0] : undefined;
  const visit = async (entry: FileSystemEntry, path: string): Promise<void> => {
    if (entry.name === '.git' || entry.name === '__pycache__') return;
    if (entry.isFile) {
      if (files.size === MOST_FILES) throw new TooMany();
      files.set(path, await fileOf(entry as FileSystemFileEntry));
      return;
    }
    for (const inner of await childrenOf(entry as FileSystemDirectoryEntry)) {
      await visit(inner, path ? `${path}/${inner.name}` : inner.name);
    }
  };
  if (single) await visit(single, '');
  else for (const entry of entries) await visit(entry, entry.name);
  return { reading: (readings += 1), name: single?.name ?? 'dropped', files };
}

export function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

async function childrenOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all; // they come a hundred at a time
    all.push(...some);
  }
}

export interface JobFile {
  path: string;
  text: string;
}

const LARGEST_JOB = 1024 * 1024; // bytes, what the service takes
const MOST_LOOKED_AT = 200;

/** The job files of the folder, the nearest to its root first. */
export async function jobFilesOf(folder: Folder): Promise<JobFile[]> {
  const depth = (path: string) => path.split('/').length;
  const paths = [...folder.files.keys()]
    .filter((path) => /\.ya?ml$/i.test(path) && depth(path) <= 4 && !/(^|\/)(\.|node_modules\/)/.test(path))
    .sort((a, b) => depth(a) - depth(b) || a.localeCompare(b))
    .slice(0, MOST_LOOKED_AT);
  const found: JobFile[] = [];
  for (const path of paths) {
    const file = folder.files.get(path)!;
    if (file.size > LARGEST_JOB) continue;
    const text = await file.text();
    if (looksLikeJob(text)) found.push({ path, text });
  }
  return found;
}
