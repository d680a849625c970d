// A page that is open while the service goes away and comes back: it says so, and goes on without a reload.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runStory } from './browser.mjs';

await runStory(async ({ page, link, origin }) => {
  const { JOB: job, CONTROL: control } = process.env;
  await page.goto(link);
  await page.getByText(job).first().waitFor();
  await page.goto(`${origin}/portal/jobs/${job}/logs`);
  await page.getByText('before', { exact: true }).first().waitFor();
  writeFileSync(join(control, 'seen'), '');
  while (!existsSync(join(control, 'gone'))) await page.waitForTimeout(50);
  await page.getByText('The service does not answer.').first().waitFor();
  writeFileSync(join(control, 'noticed'), '');
  await page.getByText('after', { exact: true }).first().waitFor({ timeout: 60_000 });
  await page.getByText('Completed', { exact: true }).first().waitFor();
});
