// All trials of a sweep, page by page. A page of trials that have all ended changes no more and is kept.
import { answer, type Schemas, service } from '../../api/client';
import { hasEnded } from '../../api/queries';

export type Page = Schemas['Trials'];

const ON_A_PAGE = 1_000;
export const MOST_PAGES = 20;

/** Those at the beginning that change no more; a last page may still get more trials. */
export function keptOf(pages: Page[]): Page[] {
  const open = pages.findIndex((page) => page.next == null || page.trials.some((trial) => !hasEnded(trial.state)));
  return open < 0 ? pages : pages.slice(0, open);
}

export async function readPages(job: string, before: Page[]): Promise<Page[]> {
  const pages = [...keptOf(before)];
  while (pages.length < MOST_PAGES && (pages.length === 0 || pages.at(-1)!.next != null)) {
    const after = pages.at(-1)?.next ?? undefined;
    pages.push(
      await answer(
        service.GET('/v1/jobs/{job}/trials', { params: { path: { job }, query: { limit: ON_A_PAGE, after } } }),
      ),
    );
  }
  return pages;
}
