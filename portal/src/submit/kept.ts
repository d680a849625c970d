// What one typed on the page, kept for as long as its tab is open: leaving the page loses none of it.
// The files of a chosen folder cannot be kept.

export interface Kept {
  file: string;
  text: string;
  place: string;
  rerun: boolean; // with the code of the job that the page is about
  folder?: { name: string; jobFile: string }; // where the text was of a job file in a folder
}

const keyOf = (page: string) => `tutti-draft ${page}`;

/** `page`: the job that is rerun, or "new". */
export function keep(page: string, kept: Kept): void {
  try {
    sessionStorage.setItem(keyOf(page), JSON.stringify(kept));
  } catch {
    drop(page); // There is no space for it, and an older text would come back in its place.
  }
}

export function drop(page: string): void {
  sessionStorage.removeItem(keyOf(page));
}

export function keptOf(page: string): Kept | null {
  try {
    return JSON.parse(sessionStorage.getItem(keyOf(page)) ?? 'null') as Kept | null;
  } catch {
    return null;
  }
}
