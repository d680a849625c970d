// The first minutes of a user: the link, the list, a job's output as it comes, its end by a click.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { runStory } from './browser.mjs';

await runStory(async ({ page, link }) => {
  const { GATE: gate, DISPLAY_NAME: name } = process.env;
  let alerts = 0;
  page.on('dialog', (dialog) => {
    alerts += 1;
    return dialog.dismiss();
  });
  await page.goto(link);
  await page.getByRole('link', { name }).first().click();
  await page.getByRole('heading', { name }).waitFor();
  await page.getByRole('tab', { name: 'Logs' }).click();
  await page.getByText('<img src=x onerror=alert(1)>').first().waitFor();
  assert.equal(await page.getByText('the gate is open').count(), 0);
  writeFileSync(gate, '');
  await page.getByText('the gate is open').first().waitFor();
  await page.getByRole('button', { name: /^Cancel/ }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: /cancel/i }).last().click();
  await page.getByText('Canceled', { exact: true }).first().waitFor();
  assert.equal(alerts, 0, 'a name of a job ran as a script');
});
