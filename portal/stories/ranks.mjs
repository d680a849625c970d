// The grid of ranks of a job of which rank 1 has ended and the others wait for the file GATE: each says how it stands.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { assertAccessible, runStory } from './browser.mjs';

const { JOB: job, GATE: gate, SHOTS } = process.env;

await runStory(async ({ page, link, origin }) => {
  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  await page.goto(`${origin}/portal/jobs/${job}`);
  const rank = (number, how) => page.getByRole('link', { name: new RegExp(`^Rank ${number} on .*: ${how}`) });
  await rank(1, 'ended, exit code 0, 20').waitFor();
  await rank(0, 'running').waitFor();
  await rank(2, 'running').waitFor();
  await page.getByText('2 running, 1 ended').waitFor();
  // Those that run get values of what they use; what the one that ended used last is not shown as if it did.
  await rank(0, 'running, .* cores').waitFor();
  assert.doesNotMatch(await rank(1, 'ended').innerText(), /cores|running/);
  const colour = (of) => of.evaluate((cell) => getComputedStyle(cell).backgroundColor);
  assert.notEqual(await colour(rank(1, 'ended')), await colour(rank(0, 'running')));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/ranks-${colorScheme}.png` });
    await assertAccessible(page, `ranks, ${colorScheme}`);
  }
  writeFileSync(gate, '');
  for (const number of [0, 1, 2]) await rank(number, 'ended, exit code 0').waitFor();
  await page.getByText('3 ended.').waitFor();
});
