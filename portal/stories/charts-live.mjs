// A zoomed chart of a job that runs: the points that come into its part appear.
import { writeFileSync } from 'node:fs';
import { runStory } from './browser.mjs';

const { JOB, GATE } = process.env;

await runStory(async ({ page, link, origin }) => {
  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  const chart = page.getByRole('figure', { name: 'loss' });
  const asked = page.waitForResponse((response) => /metric=loss.*from=900&to=1100/.test(response.url()));
  await page.goto(`${origin}/portal/jobs/${JOB}/metrics?steps=900..1100`);
  await asked;
  const over = chart.locator('.u-over');
  const { width, height } = await over.boundingBox();
  const hover = () => over.hover({ position: { x: width / 2 + 1, y: height / 2 } });
  await hover();
  await chart.getByText('900', { exact: true }).waitFor(); // the nearest of what there is: up to 900
  writeFileSync(GATE, '');
  await page.mouse.move(0, 0);
  await page.waitForResponse(async (response) => {
    return /metric=loss/.test(response.url()) && /1100/.test(await response.text().catch(() => ''));
  });
  await hover();
  await chart.getByText('1000', { exact: true }).waitFor();
});
