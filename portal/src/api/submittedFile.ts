// Where the file lies that a job was submitted as.
import type { Schemas } from './client';

// Paths of a browser's machine are unknown; what a job file names beside its code, the service looks for on
// its own machine, where there is nothing at this place.
export const NOWHERE = '/portal';

export function isNowhere(folder: string): boolean {
  return folder === NOWHERE || folder.startsWith(`${NOWHERE}/`);
}

const ABSENT = new RegExp(String.raw`(^|[\s"'])${NOWHERE}(?:/(\S*?))?(?=["']?(?:$|[:\s]))`);

/** A fault that the service found, where it names a path that it could not know, in words that help. */
export function withoutNowhere(fault: string): string {
  const found = ABSENT.exec(fault);
  if (!found) return fault;
  const path = found[2] || '.';
  if (fault.startsWith('code: ')) {
    return `code: ${path} has not been sent: drop the folder with it and the job file here, or choose that folder`;
  }
  const before = (fault.slice(0, found.index) + found[1]).replace(/open $/, '');
  return `${before}${path} is looked for on the service’s machine: say in “Relative paths count from” where that is`;
}

type Submitted = Pick<Schemas['JobSubmission'], 'file' | 'base_directory'>;

/** Its absolute path; null of one that came from a browser, of a script's job and of one that a program made. */
export function submittedFile({ file, base_directory }: Submitted): string | null {
  if (!base_directory || isNowhere(base_directory)) return null;
  if (file.startsWith('job of ') || file === 'job') return null;
  // `file` is as the submitter typed it, and so may have folders of its own, which the other has too.
  return `${base_directory.replace(/\/+$/, '')}/${file.split('/').at(-1)}`;
}

/** What a page says of the file. */
export function fileText(submitted: Submitted): string {
  const path = submittedFile(submitted);
  if (path !== null) return path;
  const { file, base_directory } = submitted;
  return base_directory && isNowhere(base_directory) ? `${file}, submitted from the portal` : file;
}
