// The little that the page must know of a job file's text: which code folders it names, and whether it is
// one. What it means is the service's to say.
import { withoutNowhere } from '../api/submittedFile';

/** Where a path of the file leads, from a folder: both with "/" between their parts. */
export function joined(folder: string, path: string): string {
  const parts: string[] = [];
  const absolute = path.startsWith('/') || folder.startsWith('/');
  for (const part of (path.startsWith('/') ? path : `${folder}/${path}`).split('/')) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (part === '..' && !absolute) parts.push(part);
    else if (part !== '' && part !== '.' && part !== '..') parts.push(part);
  }
  return (absolute ? '/' : '') + parts.join('/');
}

/** The lines of the text that are YAML's own: those of block scalars, such as long commands, are empty. */
function ownLines(text: string): string[] {
  let block = -1; // the indentation of the key whose block scalar this is
  return text.split('\n').map((line) => {
    const indentation = line.search(/\S/);
    if (block >= 0 && (indentation < 0 || indentation > block)) return '';
    block = /(:|^\s*-)\s+[|>][-+0-9]*\s*(#.*)?$/.test(line) ? indentation : -1;
    return line;
  });
}

const KEY = String.raw`(?:code|"code"|'code')\s*:\s+(?:"([^"]*)"|'([^']*)'|`;
const OF_BLOCK = new RegExp(String.raw`^\s*(?:-\s+)?${KEY}(.*))`, 'g');
const OF_FLOW = new RegExp(String.raw`[{,]\s*${KEY}([^,{}]*))`, 'g');

/** What stands behind each key `code`, once each. */
export function codePaths(text: string): string[] {
  const paths = new Set<string>();
  for (const line of ownLines(text)) {
    for (const [, double, single, plain] of [...line.matchAll(OF_BLOCK), ...line.matchAll(OF_FLOW)]) {
      const path = double ?? single ?? plain!.replace(/(^|\s+)#.*$/, '').trim();
      if (path && !/^[a-z+]+:/i.test(path)) paths.add(path);
    }
  }
  return [...paths];
}

const OF_PATHS = /^(path|conda_file|dockerfile_path|component|trial|file|script)$/;
const NO_PATHS = /^(code|command|name|display_name|description)$/;
const ANY_KEY = /(?:^\s*(?:-\s+)?|[{,]\s*)["']?([\w.-]+)["']?\s*:\s+(?:"([^"]*)"|'([^']*)'|([^\s{}[\],#][^{},#]*))/g;

/** Whether the text likely names a file or folder beside it, other than its code. */
export function namesRelativePath(text: string): boolean {
  return ownLines(text).some((line) =>
    [...line.matchAll(ANY_KEY)].some(([, key, double, single, plain]) => {
      const value = (double ?? single ?? plain!).trim();
      const path = value.replace(/^file:(?!\/\/)/, '');
      if (NO_PATHS.test(key!) || /^(\/|\w[\w+.-]*:|\$|[|>]|$)/.test(path)) return false;
      return path !== value || /^\.\.?(\/|$)/.test(path) || OF_PATHS.test(key!);
    }),
  );
}

/** Whether the text is likely a job file, of all the YAML files that a folder may hold. */
export function looksLikeJob(text: string): boolean {
  const keys = ownLines(text).join('\n');
  if (/^type\s*:\s*["']?(command|pipeline|sweep)\b/m.test(keys)) return true;
  if (/^\$schema\s*:.*(command|pipeline|sweep)Job/m.test(keys)) return true;
  return /^(command|trial|jobs)\s*:/m.test(keys) && !/^(name\s*:.*\n)?dependencies\s*:/m.test(keys);
}

export interface Fault {
  line: number | null; // from 1
  text: string;
}

/** What the service says of a job file, a fault a line: "job.yml:9: …". */
export function faultsOf(message: string, file: string): Fault[] {
  return message.split('\n').filter(Boolean).map((text) => {
    const rest = text.startsWith(`${file}:`) ? /^(\d+): (.*)$/.exec(text.slice(file.length + 1)) : null;
    return rest ? { line: Number(rest[1]), text: withoutNowhere(rest[2]!) } : { line: null, text: withoutNowhere(text) };
  });
}

/** Which characters of its line a fault is about: those that it quotes, or the line without its indentation. */
export function markOf(line: string, fault: string): { from: number; to: number } {
  for (const [, quoted] of fault.matchAll(/"([^"]+)"/g)) {
    const from = line.indexOf(quoted!);
    if (from >= 0) return { from, to: from + quoted!.length };
  }
  const to = line.trimEnd().length;
  return { from: Math.min(line.search(/\S|$/), to), to };
}
