// Another user's program has the port while the service is away, and all that a page of theirs can leave in the browser.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launchFirefox } from './firefox.mjs';
import { runStory } from './browser.mjs';

const { BROWSER, CONTROL: control } = process.env;

async function when(name) {
  while (!existsSync(join(control, name))) await new Promise((resolve) => setTimeout(resolve, 50));
  return readFileSync(join(control, name), 'utf8');
}

const token = () => localStorage.getItem('tutti-write-token');
const signedIn = async () => {
  while (localStorage.getItem('tutti-write-token') === null) await new Promise((resolve) => setTimeout(resolve, 50));
};
const workers = async () => ({
  registered: (await navigator.serviceWorker.getRegistrations()).length,
  controlled: navigator.serviceWorker.controller !== null,
});

async function squatted(page, link) {
  const before = new URL(link).origin;
  await page.goto(link);
  await page.evaluate(signedIn);
  const stolen = await page.evaluate(token);
  assert.match(stolen, /^[0-9a-f]{64}$/);
  writeFileSync(join(control, 'signed-in'), '');

  // The squatter's page is of the same origin: it reads what is stored there, and its worker stays.
  await when('squatted');
  await page.goto(`${before}/portal/`);
  assert.equal(await page.evaluate(() => document.title), 'squatter');
  assert.equal(await page.evaluate(token), stolen);
  await page.evaluate(async () => {
    await navigator.serviceWorker.register('/worker.js', { scope: '/' });
    await navigator.serviceWorker.ready;
  });
  writeFileSync(join(control, 'caught'), stolen);

  // The service is back. At the name of before the worker still answers, and has no session; the service is at another one.
  const again = (await when('again')).trim();
  const after = new URL(again).origin;
  assert.notEqual(after, before);
  await page.goto(`${before}/portal/`);
  assert.equal(await page.evaluate(() => document.title), 'of the worker');
  const calls = await page.evaluate(
    async ({ after, stolen, job }) => {
      const statuses = [(await fetch('/v1/jobs?by=worker')).status];
      const headers = { 'X-Tutti-Portal': stolen };
      for (const mode of ['cors', 'no-cors']) {
        statuses.push(await fetch(`${after}/v1/jobs/${job}/cancel`, { method: 'POST', mode, credentials: 'include', headers }).then(({ status }) => status, () => 'refused'));
      }
      return statuses;
    },
    { after, stolen, job: process.env.JOB },
  );
  assert.deepEqual(calls, [421, 'refused', 0]);
  await page.goto(again);
  await page.evaluate(signedIn);
  assert.deepEqual(await page.evaluate(workers), { registered: 0, controlled: false });
  assert.equal(await page.evaluate(async () => (await fetch('/v1/jobs')).status), 200);
  assert.notEqual(await page.evaluate(token), stolen);
}

if (BROWSER === 'firefox') {
  const page = await launchFirefox(Number(process.env.TUTTI_TEST_PATIENCE ?? 1));
  try {
    await squatted(page, process.env.TUTTI_PORTAL_LINK);
  } finally {
    await page.close();
  }
} else {
  await runStory(({ page, link }) => squatted(page, link));
}
