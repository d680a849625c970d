// Signing in by typing, signing out of one browser, whose cookie opens nothing any more, and of all.
import assert from 'node:assert/strict';
import { runStory } from './browser.mjs';

await runStory(async ({ browser, context, page, link, origin }) => {
  const { SECOND: second, JOB: job } = process.env;
  const address = `${origin}/portal/jobs/${job}/logs`;
  await page.goto(address);
  await page.getByText(`tutti portal ${address}`).waitFor();
  await page.getByLabel('Link, or its word').fill('0123');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('used already, or is too old').waitFor();
  await page.getByLabel('Link, or its word').fill(link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('tab', { name: 'Logs' }).waitFor();
  assert.equal(page.url(), address, 'it stays where the address leads');

  const other = await browser.newContext();
  const elsewhere = await other.newPage();
  await elsewhere.goto(`${origin}/portal/`);
  await elsewhere.getByRole('button', { name: 'Sign in' }).waitFor();
  await elsewhere.goto(`${origin}/portal/${new URL(second).hash}`); // in the same tab: the fragment alone changes
  await elsewhere.getByRole('link', { name: job }).first().waitFor();

  const cookies = await context.cookies(`${origin}/v1/jobs`);
  const copied = await browser.newContext();
  await copied.addCookies(cookies);
  const reads = async (from) => (await from.request.get(`${origin}/v1/jobs`)).status();
  assert.equal(await reads(copied), 200);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('menuitem', { name: 'This browser' }).click();
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  assert.equal(await reads(copied), 401, 'a copy of the cookie outlived the signing out');
  assert.equal(await reads(other), 200);

  await elsewhere.getByRole('button', { name: 'Sign out' }).click();
  await elsewhere.getByRole('menuitem', { name: 'All browsers' }).click();
  await elsewhere.getByRole('button', { name: 'Sign in' }).waitFor();
  assert.equal(await reads(other), 401);
});
