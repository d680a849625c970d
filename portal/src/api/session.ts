// Signing in and out. The link that `tutti portal` prints has a word in its fragment that opens one session. The word
// leaves the address before anything else is done, and is never part of a request's URL.
import { answer, forgetWriteToken, keepWriteToken, service } from './client';

const FRAGMENT = /^#sign-in=([0-9a-f]+)$/;

/** Opens a session if the address has such a word. Returns why it could not, or null. */
export async function signIn(): Promise<string | null> {
  const word = FRAGMENT.exec(location.hash)?.[1];
  if (!word) return null;
  history.replaceState(null, '', location.pathname + location.search);
  try {
    const session = await answer(service.POST('/v1/portal-sessions', { params: { header: { 'X-Tutti-Word': word } } }));
    keepWriteToken(session.write_token);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Closes the session and begins the page anew, so that nothing of what it has read stays in it. */
export async function signOut(): Promise<void> {
  await answer(service.DELETE('/v1/portal-sessions'));
  forgetWriteToken();
  sessionStorage.clear();
  location.assign('/portal/');
}
