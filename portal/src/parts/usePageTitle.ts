import { useDocumentTitle } from '@mantine/hooks';

/** Names the page in the browser's tabs and history. */
export function usePageTitle(name: string): void {
  useDocumentTitle(`${name} – tutti`);
}
