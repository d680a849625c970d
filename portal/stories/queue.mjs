// The queue of two steps and a job behind them, on the page of nodes and on the pages of those that wait.
import assert from 'node:assert/strict';
import { assertAccessible, runStory } from './browser.mjs';

const { CLEAN: clean, SHOTS } = process.env;

await runStory(async ({ page, link, origin }) => {
  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  await page.goto(`${origin}/portal/nodes`);
  const table = page.getByRole('table', { name: 'Jobs that wait for local' });
  await table.getByText('the last one').waitFor();
  const rows = (await table.getByRole('row').allInnerTexts()).slice(1);
  assert.deepEqual(rows.map((row) => row.trim().split(/\s/)[0]), ['1', '2', '3']);
  assert.match(rows[0], /clean\s+of\s+three-steps.*at the latest/s);
  assert.match(rows[1], /count\s+of\s+three-steps.*an estimate/s);
  assert.match(rows[2], /the last one/);
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/queue.png`, fullPage: true });
  await assertAccessible(page, 'the queue');
  await table.getByRole('link', { name: 'the last one' }).click();
  await page.getByText('Place 3 in the queue, behind').waitFor();
  await page.getByText(/an estimate/).first().waitFor();
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/queue-job.png` });
  await page.getByRole('status').getByRole('link', { name: 'clean', exact: true }).click();
  await page.getByText('Place 1 in the queue.').waitFor();
  await page.getByText(/at the latest/).first().waitFor();
  assert.ok(page.url().endsWith(`/jobs/${encodeURIComponent(clean)}`));
});
