// What a page of another origin tries while the user is signed in: each attempt must fail, and in the way that is meant.
import assert from 'node:assert/strict';
import { runStory } from './browser.mjs';

await runStory(async ({ context, page, link, origin }) => {
  const { JOB: job, PORT: port } = process.env;
  const attacker = `http://${new URL(origin).hostname}:${port}`; // of the same site: no cookie is withheld from it
  await page.goto(link);
  await page.getByText('1 job', { exact: false }).first().waitFor();
  assert.equal(new URL(page.url()).hash, '', 'the word stays in the address');
  const [cookie] = await context.cookies(`${origin}/v1/jobs`);
  assert.equal(cookie.sameSite, 'Strict');
  assert.equal(cookie.httpOnly, true);
  assert.equal(await page.evaluate(() => document.cookie), '', 'a script can read the cookie');

  // The word was used: whoever finds it later gets nothing.
  const second = await context.browser().newContext();
  const stranger = await second.newPage();
  await stranger.goto(link);
  await stranger.getByText('tutti portal', { exact: true }).waitFor();
  await stranger.getByText('used already').waitFor();
  assert.equal((await stranger.request.get(`${origin}/v1/jobs`)).status(), 401);

  // The same browser, on a page of another port of the same host, to which cookies go.
  const evil = await context.newPage();
  await evil.goto(attacker);
  const tried = await evil.evaluate(
    async ({ origin, job }) => {
      const results = {};
      const attempt = async (name, does) => {
        try {
          results[name] = await does();
        } catch (error) {
          results[name] = error.name;
        }
      };
      const cancel = `${origin}/v1/jobs/${job}/cancel`;
      await attempt('read', async () => (await (await fetch(`${origin}/v1/jobs`, { credentials: 'include' })).text()).length);
      await attempt('simple', async () => (await fetch(cancel, { method: 'POST', credentials: 'include', mode: 'no-cors' })).type);
      await attempt('with token', async () =>
        (await fetch(cancel, { method: 'POST', credentials: 'include', headers: { 'X-Tutti-Portal': 'x' } })).status);
      await attempt('script', () =>
        new Promise((resolve) => {
          const script = document.createElement('script');
          script.src = `${origin}/v1/jobs`;
          script.onload = () => resolve('ran');
          script.onerror = () => resolve('refused');
          document.head.append(script);
        }));
      return results;
    },
    { origin, job },
  );
  assert.equal(tried.read, 'TypeError', JSON.stringify(tried));
  assert.equal(tried['with token'], 'TypeError', JSON.stringify(tried));
  assert.notEqual(tried.script, 'ran', JSON.stringify(tried));
  // A form that a page sends by itself.
  await evil.setContent(`<form method="post" action="${origin}/v1/jobs/${job}/cancel"></form>`);
  const answered = evil.waitForResponse((response) => response.url().endsWith('/cancel'));
  await evil.evaluate(() => document.querySelector('form').submit());
  assert.equal((await answered).status(), 401);
  // A frame around the portal.
  const framing = await context.newPage();
  await framing.goto(attacker);
  const refused = framing.waitForEvent('console', (message) => /frame-ancestors/.test(message.text()));
  await framing.setContent(`<iframe src="${origin}/portal/"></iframe>`);
  await refused;

  // A name that leads to loopback (rebinding): a session opens nothing under it.
  assert.equal((await page.request.get(`${origin}/v1/jobs`, { headers: { Host: 'rebound.example' } })).status(), 421);
  assert.equal((await page.request.get(`${origin}/v1/jobs`)).status(), 200, 'the user is still signed in');

  // Who signs out leaves nothing for the next one at this browser.
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('menuitem', { name: 'This browser' }).click();
  await page.getByText('Sign in to see jobs').waitFor();
  assert.equal((await page.request.get(`${origin}/v1/jobs`)).status(), 401);
  assert.equal(await page.evaluate(() => localStorage.getItem('tutti-write-token')), null);
});
