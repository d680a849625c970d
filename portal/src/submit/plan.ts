// What of a dropped folder would be sent: for each code folder that the job file names, its files.
import { sortCode, type LeftOut } from './pack/ignore';
import type { Folder } from './folder';
import { codePaths, joined } from './yaml';

export const MOST_BYTES = 256 * 1000 * 1000;

export interface Code {
  key: string; // its absolute path, by which the service knows it
  path: string; // as the job file names it
  files: Map<string, File>; // by their names in the archive
  bytes: number;
  leftOut: LeftOut[];
  secrets: string[]; // files that often hold secrets
}

export interface Plan {
  codes: Code[];
  absent: string[]; // code that the file names and that is not in the folder
}

const SECRETS = /(^|\/)(\.env|\.netrc|\.git-credentials|\.pypirc|id_(rsa|dsa|ecdsa|ed25519)|\.aws\/credentials)$/;

/** `jobFile`: the job file's path in the folder; `base`: the absolute path that its paths count from. */
export async function planOf(folder: Folder, jobFile: string, base: string, text: string): Promise<Plan> {
  const plan: Plan = { codes: [], absent: [] };
  const here = jobFile.slice(0, jobFile.lastIndexOf('/') + 1);
  for (const path of codePaths(text)) {
    const within = joined(here, path);
    const key = joined(base, path);
    if (plan.codes.some((code) => code.key === key)) continue;
    const single = folder.files.get(within);
    if (path.startsWith('/') || within.startsWith('..')) plan.absent.push(path);
    else if (single) plan.codes.push(codeOf(key, path, new Map([[within.split('/').at(-1)!, single]]), []));
    else await addFolder(plan, folder, key, path, within === '' ? '' : `${within}/`);
  }
  return plan;
}

async function addFolder(plan: Plan, folder: Folder, key: string, path: string, within: string): Promise<void> {
  const read = (name: string) => folder.files.get(name)!.text();
  const { kept, leftOut } = await sortCode([...folder.files.keys()], within, read);
  if (kept.length === 0 && leftOut.length === 0) {
    plan.absent.push(path);
    return;
  }
  const files = new Map(kept.map((name) => [name.slice(within.length), folder.files.get(name)!]));
  plan.codes.push(codeOf(key, path, files, leftOut));
}

function codeOf(key: string, path: string, files: Map<string, File>, leftOut: LeftOut[]): Code {
  const bytes = [...files.values()].reduce((sum, file) => sum + file.size, 0);
  return { key, path, files, bytes, leftOut, secrets: [...files.keys()].filter((name) => SECRETS.test(name)) };
}
