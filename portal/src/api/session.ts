// Signing in and out. The link that `tutti portal` prints has a word in its fragment that opens one session. The word
// leaves the address before anything else is done, and is never part of a request's URL.
import { answer, forgetWriteToken, keepWriteToken, service, ServiceError } from './client';

/** The word that a link, or what follows its "#", has. */
export function wordIn(text: string): string | null {
  return /(?:^|#)sign-in=([0-9a-f]+)\s*$/.exec(text)?.[1] ?? null;
}

/** The command that opens the page of an address, signed in. */
export function commandFor({ href, pathname, search }: Pick<Location, 'href' | 'pathname' | 'search'>): string {
  if (/^\/(portal\/?)?$/.test(pathname) && !search) return 'tutti portal';
  const address = href.split('#')[0]!;
  return `tutti portal ${/^[\w:/.~%-]+$/.test(address) ? address : `'${address.replaceAll("'", '%27')}'`}`;
}

/** Opens a session if the address has a word. Returns why it could not, or null. */
export async function signIn(): Promise<string | null> {
  const word = wordIn(location.hash);
  if (!word) return null;
  history.replaceState(null, '', location.pathname + location.search);
  try {
    await openSession(word);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

export async function openSession(word: string): Promise<void> {
  const session = await answer(service.POST('/v1/portal-sessions', { params: { header: { 'X-Tutti-Word': word } } }));
  keepWriteToken(session.write_token);
}

/** Ends the session, or those of all browsers, and begins the page anew, so that nothing of what it has read stays in it. */
export async function signOut(everywhere: boolean): Promise<void> {
  try {
    await answer(service.DELETE('/v1/portal-sessions', { params: { query: everywhere ? { everywhere } : {} } }));
  } catch (error) {
    // One that is refused has ended already, elsewhere or with the service's last start.
    if (!(error instanceof ServiceError && (error.status === 401 || error.status === 421))) throw error;
  }
  forgetWriteToken();
  sessionStorage.clear();
  location.assign('/portal/');
}
