// Folds paths into the rows of a tree: folders first, then files, each sorted by name.

export interface Leaf {
  path: string;
  bytes: number;
}

export interface TreeRow {
  path: string; // of a folder without "/" behind it
  name: string;
  depth: number; // from 0
  folder: boolean;
  open: boolean;
  bytes: number; // of a folder: of all that is in it
  files: number; // 1 of a file
}

interface Folder {
  folders: Map<string, Folder>;
  files: Leaf[];
  bytes: number;
  count: number;
}

const emptyFolder = (): Folder => ({ folders: new Map(), files: [], bytes: 0, count: 0 });

function gather(files: Leaf[]): Folder {
  const root = emptyFolder();
  for (const file of files) {
    let at = root;
    for (const part of file.path.split('/').slice(0, -1)) {
      at.bytes += file.bytes;
      at.count += 1;
      const next = at.folders.get(part) ?? emptyFolder();
      at.folders.set(part, next);
      at = next;
    }
    at.bytes += file.bytes;
    at.count += 1;
    at.files.push(file);
  }
  return root;
}

const inOrder = new Intl.Collator('en', { numeric: true }).compare;

/** The rows that are seen where `isOpen` says of a folder's path and depth whether it is unfolded. */
export function treeRows(files: Leaf[], isOpen: (path: string, depth: number) => boolean): TreeRow[] {
  const rows: TreeRow[] = [];
  const visit = (at: Folder, above: string, depth: number) => {
    for (const name of [...at.folders.keys()].sort(inOrder)) {
      const folder = at.folders.get(name)!;
      const path = above + name;
      const open = isOpen(path, depth);
      rows.push({ path, name, depth, folder: true, open, bytes: folder.bytes, files: folder.count });
      if (open) visit(folder, `${path}/`, depth + 1);
    }
    const own = at.files.map((file) => ({ ...file, name: file.path.slice(above.length) }));
    for (const { path, name, bytes } of own.sort((a, b) => inOrder(a.name, b.name))) {
      rows.push({ path, name, depth, folder: false, open: false, bytes, files: 1 });
    }
  };
  visit(gather(files), '', 0);
  return rows;
}
