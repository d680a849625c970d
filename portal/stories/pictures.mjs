// Takes the pictures of tools/draw-portal, each once its page shows what the picture is of.
import { runStory } from './browser.mjs';

const { COMPARED, FAILED, FOLDER, RUNNING } = process.env;

const PICTURES = {
  'portal-job': {
    path: `/jobs/${RUNNING}`,
    async look(page) {
      await page.getByText('evaluation/top1', { exact: true }).first().waitFor({ timeout: 120_000 });
      await page.getByRole('button', { name: /^Cancel/ }).first().waitFor(); // it still runs
    },
  },
  'portal-logs': {
    path: `/jobs/${FAILED}/logs`,
    async look(page) {
      await page.getByText(/^Failed: /).last().waitFor();
      await page.getByRole('button', { name: 'Jump to the cause' }).click();
      await page.waitForURL(/[?&]line=/); // the line is marked
    },
  },
  'portal-compare': {
    path: `/compare?jobs=${COMPARED}`,
    async look(page) {
      await page.locator('canvas').nth(1).waitFor();
    },
  },
};

await runStory(async ({ page, link, origin }) => {
  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  for (const [name, { path, look }] of Object.entries(PICTURES)) {
    await page.goto(`${origin}/portal${path}`);
    await look(page);
    await page.waitForLoadState('networkidle', { timeout: 3000 }).catch(() => {}); // output that is followed keeps a connection
    await page.screenshot({ path: `${FOLDER}/${name}.png`, animations: 'disabled' });
  }
});
