// Which files of a code folder stay at home, by the rules of docs/formats/snapshot.md: .git and __pycache__,
// Python environments and downloads in any case; beyond that what .amlignore in the code folder names or,
// where there is none, what each .gitignore does, from the dropped folder down. Patterns are git's.

interface Rule {
  pattern: RegExp;
  negated: boolean;
  foldersOnly: boolean;
}

interface IgnoreFile {
  folder: string; // that its patterns count from: "" or with "/" behind it
  name: string;
  rules: Rule[];
}

export interface LeftOut {
  path: string; // of a folder with "/" behind it
  by: string;
}

export interface Sorted {
  kept: string[];
  leftOut: LeftOut[];
}

/**
 * Sorts the paths of a dropped folder by whether they are a part of the code folder `code` ("" or with "/"
 * behind it) that is sent. `read` gives the text of an ignore file.
 */
export async function sortCode(
  paths: string[],
  code: string,
  read: (path: string) => Promise<string>,
): Promise<Sorted> {
  const within = paths.filter((path) => path.startsWith(code));
  const own = `${code}.amlignore`;
  const names = within.includes(own)
    ? [own]
    : paths.filter((path) => /(^|\/)\.gitignore$/.test(path) && concerns(folderOf(path), code));
  const files: IgnoreFile[] = [];
  for (const name of names) files.push({ folder: folderOf(name), name, rules: rulesOf(await read(name)) });
  files.sort((a, b) => b.folder.length - a.folder.length); // a deeper file decides before those above it
  const foreign = foreignFolders(within);
  const decided = new Map<string, string | null>(); // by a folder's path: what leaves it out
  const leftOut: LeftOut[] = [];
  const folderLeftOut = (folder: string): string | null => {
    if (folder === code || folder.length < code.length) return null;
    const known = decided.get(folder);
    if (known !== undefined) return known;
    const above = folderLeftOut(folderOf(folder.slice(0, -1)));
    const by = above ?? alwaysLeftOut(folder, foreign) ?? decide(files, folder.slice(0, -1), true);
    decided.set(folder, by);
    if (by && !above) leftOut.push({ path: folder, by });
    return by;
  };
  const kept = within.filter((path) => {
    if (folderLeftOut(folderOf(path))) return false;
    if (/(^|\/)\.git$/.test(path)) return false;
    const by = decide(files, path, false);
    if (by) leftOut.push({ path, by });
    return !by;
  });
  return { kept, leftOut: leftOut.filter(({ path }) => !/(^|\/)(\.git|__pycache__)\/$/.test(path)) };
}

function concerns(folder: string, code: string): boolean {
  return folder.startsWith(code) || code.startsWith(folder);
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

/** Folders that are of another machine or no code, with the file that says so. */
function foreignFolders(paths: string[]): Map<string, string> {
  const folders = new Map<string, string>();
  for (const path of paths) {
    const found = /^(.*\/)(pyvenv\.cfg|conda-meta\/.*|\.tutti-download)$/.exec(path);
    if (found) folders.set(found[1]!, found[2]!.split('/')[0]!);
  }
  return folders;
}

function alwaysLeftOut(folder: string, foreign: Map<string, string>): string | null {
  const name = folder.slice(0, -1).split('/').at(-1)!;
  return name === '.git' || name === '__pycache__' ? name : (foreign.get(folder) ?? null);
}

function decide(files: IgnoreFile[], path: string, isFolder: boolean): string | null {
  for (const { folder, name, rules } of files) {
    if (!path.startsWith(folder)) continue;
    const rest = path.slice(folder.length);
    const rule = rules.findLast((each) => (isFolder || !each.foldersOnly) && each.pattern.test(rest));
    if (rule) return rule.negated ? null : name;
  }
  return null;
}

export function rulesOf(text: string): Rule[] {
  const rules: Rule[] = [];
  for (const raw of text.split(/\r?\n/)) {
    let line = raw.replace(/(?<!\\)(\s+)$/, '');
    if (line === '' || line.startsWith('#')) continue;
    const negated = line.startsWith('!');
    if (negated) line = line.slice(1);
    const foldersOnly = line.endsWith('/');
    if (foldersOnly) line = line.slice(0, -1);
    const anyDepth = !line.includes('/');
    const pattern = expressionOf(anyDepth ? `**/${line}` : line.replace(/^\//, ''));
    if (pattern) rules.push({ pattern, negated, foldersOnly });
  }
  return rules;
}

/** A pattern of git as an expression; null if it is none, which matches nothing. */
function expressionOf(pattern: string): RegExp | null {
  let source = '';
  for (let at = 0; at < pattern.length; at += 1) {
    const rest = pattern.slice(at);
    const list = /^\[([!^]?)(\]?(?:\[:[a-z]+:\]|\\.|[^\]])*)\]/.exec(rest);
    if (rest.startsWith('**/') && (at === 0 || pattern[at - 1] === '/')) {
      source += '(?:.*/)?';
      at += 2;
    } else if (rest === '**' && pattern[at - 1] === '/') {
      source += '.+';
      at += 1;
    } else if (rest[0] === '*') {
      source += '[^/]*';
      while (pattern[at + 1] === '*') at += 1; // within a name, more stars are as one
    } else if (rest[0] === '?') {
      source += '[^/]';
    } else if (list) {
      source += `(?!/)[${list[1] ? '^' : ''}${setOf(list[2]!)}]`;
      at += list[0].length - 1;
    } else {
      if (rest[0] === '\\') at += 1;
      source += (pattern[at] ?? '').replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
    }
  }
  try {
    return new RegExp(`^${source}$`, 's');
  } catch {
    return null;
  }
}

const CLASSES: Record<string, string> = {
  digit: '0-9', alpha: 'A-Za-z', alnum: 'A-Za-z0-9', lower: 'a-z', upper: 'A-Z', space: '\\s', xdigit: '0-9A-Fa-f',
  punct: '!-\\/:-@\\[-`{-~',
};

function setOf(list: string): string {
  return list
    .split(/(\[:[a-z]+:\])/)
    .map((part) => CLASSES[/^\[:([a-z]+):\]$/.exec(part)?.[1] ?? ''] ?? part.replace(/\\?([\]\\^[])/g, '\\$1'))
    .join('');
}
