// A page that is open while the service goes away and comes back: it says both, and the command that it gives opens the same page signed in.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runStory } from './browser.mjs';

await runStory(async ({ page, link, origin }) => {
  const { JOB: job, CONTROL: control, TUTTI: tutti } = process.env;
  await page.goto(link);
  await page.getByText(job).first().waitFor();
  await page.goto(`${origin}/portal/jobs/${job}/logs`);
  await page.getByText('before', { exact: true }).first().waitFor();
  writeFileSync(join(control, 'seen'), '');
  while (!existsSync(join(control, 'gone'))) await page.waitForTimeout(50);
  await page.getByText('The service does not answer.').first().waitFor();
  writeFileSync(join(control, 'noticed'), '');
  const alert = page.getByRole('alert').filter({ hasText: 'The service has started anew' });
  await alert.waitFor({ timeout: 60_000 });
  const command = await alert.locator('code').textContent();
  assert.equal(command, `tutti portal ${origin}/portal/jobs/${job}/logs`);
  const again = execFileSync(tutti, ['portal', '--print', ...command.split(' ').slice(2)], { encoding: 'utf8' }).trim();
  assert.notEqual(new URL(again).origin, origin);
  await page.goto(again);
  await page.getByText('after', { exact: true }).first().waitFor({ timeout: 60_000 });
  await page.getByText('Completed', { exact: true }).first().waitFor();
  assert.equal(new URL(page.url()).pathname, `/portal/jobs/${job}/logs`);
  // The address of before leads to the new one, which knows the session of its own.
  await page.goto(`${origin}/portal/jobs/${job}/logs`);
  await page.getByText('after', { exact: true }).first().waitFor();
  assert.equal(new URL(page.url()).origin, new URL(again).origin);
});
