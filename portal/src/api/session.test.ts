// @vitest-environment jsdom
import { expect, test } from 'vitest';
import { commandFor, wordIn } from './session';

test('takes the word of a link, of its fragment, and of nothing else', () => {
  expect(wordIn('http://tutti-1.localhost:6281/portal/jobs/a?x=time#sign-in=0a1b ')).toBe('0a1b');
  expect(wordIn('#sign-in=0a1b')).toBe('0a1b');
  expect(wordIn('sign-in=0a1b')).toBe('0a1b');
  for (const other of ['', '0a1b', '#sign-in=', '#sign-in=xyz', '#sign-in=0a&b', '/sign-in=0a/']) expect(wordIn(other)).toBe(null);
});

test('gives the command for a page, quoted where a shell wants it', () => {
  const at = (href: string) => commandFor(new URL(href) as unknown as Location);
  expect(at('http://h:1/portal/')).toBe('tutti portal');
  expect(at('http://h:1/portal/jobs/a/logs#x')).toBe('tutti portal http://h:1/portal/jobs/a/logs');
  expect(at("http://h:1/portal/?q=a&b='")).toBe("tutti portal 'http://h:1/portal/?q=a&b=%27'");
});
