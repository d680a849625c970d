// The log of a job that has printed LINES lines, "line 0" and on, and then failed: it opens at its end, and the rest comes
// where one asks for it. Prints how long the end took to show.
import assert from 'node:assert/strict';
import { runStory } from './browser.mjs';

const { JOB, LINES, SHOTS } = process.env;

await runStory(async ({ page, link, origin }) => {
  const asked = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (/\/(lines|stream)$/.test(url.pathname)) asked.push(url.pathname.split('/').at(-1) + url.search);
  });
  const pane = page.getByRole('region', { name: 'Output' });
  const logs = `${origin}/portal/jobs/${JOB}/logs`;
  /** The texts of the rows in sight. */
  const seen = () =>
    pane.evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      const rows = [...element.querySelectorAll('.log-row')].map((row) => [row.getBoundingClientRect(), row]);
      return rows
        .filter(([box]) => box.top >= top - 1 && box.bottom <= bottom + 1)
        .sort(([one], [other]) => one.top - other.top)
        .map(([, row]) => row.querySelector('.log-text').textContent);
    });
  const numbers = async () => (await seen()).map((text) => /^line (\d+)$/.exec(text)?.[1]).filter(Boolean).map(Number);
  const inOrder = async () => {
    const all = await numbers();
    assert.ok(all.length > 5, `lines are in sight: ${all}`);
    all.forEach((number, at) => assert.equal(number, all[0] + at, `gaps or repeats among ${all}`));
    return all[0];
  };
  const shown = (text) => pane.getByText(text, { exact: true }).waitFor();

  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  const began = performance.now();
  await page.goto(logs);
  await shown(`line ${LINES - 1}`);
  console.log(Math.round(performance.now() - began));
  await page.getByText(/^The last [\d,]+ lines; earlier ones come as one scrolls up/).waitFor();
  assert.match((await seen()).at(-1), /^Failed: /);
  assert.equal(asked.filter((call) => call.startsWith('lines')).length, 1, `only the end is asked for: ${asked}`);
  assert.ok(!asked.some((call) => call.startsWith('stream') && !call.includes('cursor=')), `not all of it: ${asked}`);
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/logs-end.png` });

  // Upwards: what one reads stays where it is while earlier lines come above it.
  await pane.hover();
  let before = await pane.evaluate((element) => element.scrollTop);
  for (let loads = 0; loads < 2; ) {
    await page.mouse.wheel(0, -6_000);
    await page.waitForTimeout(50);
    const now = await pane.evaluate((element) => element.scrollTop);
    if (now > before) loads += 1;
    before = now;
    await inOrder();
  }
  assert.ok((await inOrder()) < LINES - 4_000);

  // A search covers what is loaded, says so, and can have the rest loaded.
  const sought = Math.floor(LINES / 2);
  await page.keyboard.press('/');
  await page.keyboard.type(`line ${sought}`);
  await page.getByText('0 lines of those loaded').waitFor();
  await page.getByRole('button', { name: 'Search all: load the rest' }).click();
  await page.getByText('1 line of those loaded').waitFor();
  await page.getByText(/this page keeps 200,000 at most/i).waitFor();
  await page.getByLabel('Search the output').press('Enter');
  await pane.locator('.log-named').getByText(`line ${sought}`).waitFor();
  await inOrder();

  // The address names the line for good: by the service's word, and for who opens it.
  const cursor = new URL(page.url()).searchParams.get('line');
  const { lines } = await (await page.request.get(`${origin}/v1/jobs/${JOB}/lines?limit=1&before=${cursor}`)).json();
  assert.equal(lines.at(-1).text, `line ${sought}`);
  await page.goto('about:blank');
  await page.goto(`${logs}?line=${cursor}`);
  await pane.locator('.log-named').getByText(`line ${sought}`, { exact: true }).waitFor();
  await page.getByText(/lines from the middle/).waitFor();
  assert.ok(Math.abs((await inOrder()) - sought) < 60, 'the lines around it are in sight');
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/logs-middle.png` });

  // From the beginning, with the numbers of lines, and downwards.
  await page.getByRole('button', { name: 'From the beginning' }).click();
  await shown('line 0');
  await page.getByText(/^The first [\d,]+ lines/).waitFor();
  const number = await pane.locator('.log-row').filter({ hasText: /line 0$/ }).locator('.log-number').textContent();
  await pane.hover();
  while ((await numbers()).at(-1) < 6_000) {
    await page.mouse.wheel(0, 4_000);
    await page.waitForTimeout(20);
    await inOrder();
  }
  await page.goto(`${logs}?line=${Number(number) + 5_000}`);
  await pane.locator('.log-named').getByText('line 5000', { exact: true }).waitFor();

  await page.getByRole('button', { name: '↓ To the end' }).click();
  await shown(`line ${LINES - 1}`);
  await page.goto(`${logs}?cause=1`);
  await pane.locator('.log-named').getByText('Traceback (most recent call last):').waitFor();
  await shown('RuntimeError: at last');
  await page.goto(`${logs}?line=9-9999999-0`);
  await page.getByText('The line of this address is not among them.').waitFor();
  await shown(`line ${LINES - 1}`);
});
