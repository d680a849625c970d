// The charts of a job that wrote many points: a spike and NaNs are seen, smoothing, zoom, groups that fold, the file.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertAccessible, runStory } from './browser.mjs';

const { JOB, SHOTS } = process.env;
const [POINTS, SPIKE, NAN] = [process.env.POINTS, process.env.SPIKE, process.env.NAN].map(Number);

await runStory(async ({ page, link, origin, patience }) => {
  const chart = (name) => page.getByRole('figure', { name });
  const loss = chart('train/loss');
  const plot = loss.locator('.u-over');
  const steps = () => (new URL(page.url()).searchParams.get('steps') ?? `1..${POINTS}`).split('..').map(Number);
  const inAddress = (name) => page.waitForURL((url) => url.searchParams.has(name));
  const notInAddress = (name) => page.waitForURL((url) => !url.searchParams.has(name));

  /** Where a step is in the window, on the curve of the loss. */
  async function placeOf(step) {
    const { x, y, width, height } = await plot.boundingBox();
    const [from, to] = steps();
    return { x: x + ((step - from) / (to - from)) * width, y: y + height / 2 };
  }

  /** The rows of pixels, from 0 at the upper edge to 1, that have the curve's colour or a mark's near a step. */
  async function drawnAt(step) {
    const [from, to] = steps();
    return loss.locator('canvas').evaluate(
      (canvas, share) => {
        const over = canvas.parentElement.querySelector('.u-over');
        const scale = devicePixelRatio;
        const left = Math.round((over.offsetLeft + share * over.offsetWidth) * scale) - 3;
        const { data } = canvas.getContext('2d').getImageData(left, over.offsetTop * scale, 7, over.offsetHeight * scale);
        const rows = { curve: [], mark: [] };
        for (let at = 0; at < data.length; at += 4) {
          const [red, , blue, alpha] = data.slice(at, at + 4);
          const row = at / data.length;
          if (alpha > 60 && blue > red + 60) rows.curve.push(row);
          if (alpha > 200 && red > blue + 100) rows.mark.push(row);
        }
        return rows;
      },
      (step - from) / (to - from),
    );
  }

  /** Waits until the check holds for what is drawn near a step. */
  async function untilDrawn(step, check, what) {
    const deadline = Date.now() + 20_000 * patience;
    while (!check(await drawnAt(step))) {
      assert.ok(Date.now() < deadline, what);
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
  }

  const picture = () => loss.locator('canvas').evaluate((canvas) => canvas.toDataURL());

  /** Drags over the chart, a twentieth of what is visible to each side of a step; returns the request for it. */
  async function zoomTo(step) {
    const { width } = await plot.boundingBox();
    const { x, y } = await placeOf(step);
    const before = page.url();
    const asked = page.waitForRequest((request) => /metrics\?.*metric=train%2Floss/.test(request.url()));
    await page.mouse.move(x - width / 20, y);
    await page.mouse.down();
    await page.mouse.move(x, y);
    await page.mouse.move(x + width / 20, y);
    await page.mouse.up();
    const request = await asked;
    await (await request.response()).finished();
    await page.waitForURL((url) => url.href !== before);
    return new URL(request.url()).searchParams;
  }

  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  await page.goto(`${origin}/portal/jobs/${JOB}/metrics`);
  await loss.getByText('3 values are not finite').first().waitFor();

  // 153 metrics are one page of few screens, and what stands beside a chart is true.
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  console.log(`the page of 153 metrics is ${height} pixels high`);
  assert.ok(height <= 6000, `the page is ${height} pixels high`);
  await loss.getByText(/greatest 50, last 0\.\d+; 3 values are not finite/).waitFor();
  await chart('evaluation/accuracy').getByText('has an axis of its own').waitFor();
  await chart('evaluation/loss').getByText('Infinity', { exact: true }).waitFor();

  // The spike reaches the upper part of the chart, which the curve beside it does not; NaNs have marks at the lower edge.
  await loss.scrollIntoViewIfNeeded();
  await untilDrawn(SPIKE, ({ curve }) => Math.min(...curve) < 0.2, 'the spike is seen');
  const spike = await drawnAt(SPIKE);
  assert.ok(Math.min(...(await drawnAt(SPIKE / 2)).curve) > 0.7, 'the curve is flat elsewhere');
  assert.ok(Math.min(...(await drawnAt(NAN)).mark) > 0.8, 'a NaN has a mark');
  assert.deepEqual(spike.mark, [], 'no mark is where values are finite');

  // Smoothing changes the line; the band with the spike stays.
  const rough = await picture();
  await page.getByRole('slider', { name: 'Smoothing' }).press('End');
  await inAddress('smooth');
  const isOther = (former) => document.querySelector('[aria-label="Chart of train/loss"] canvas').toDataURL() !== former;
  await page.waitForFunction(isOther, rough);
  await untilDrawn(SPIKE, ({ curve }) => Math.min(...curve) < 0.2, 'the band is still there');
  await loss.getByText(/raw 0\.\d/).waitFor();
  await page.getByRole('slider', { name: 'Smoothing' }).press('Home');
  await notInAddress('smooth');

  // Zooming fetches the part, down to each point; the spike is read by the pointer and by keys.
  for (let turn = 0; turn < 3; turn += 1) {
    const query = await zoomTo(SPIKE);
    assert.equal(query.get('by'), 'step');
    assert.ok(Number(query.get('from')) < SPIKE && SPIKE < Number(query.get('to')), `it asks for ${query}`);
  }
  const [from, to] = steps();
  assert.ok(to - from < 512, `${from} to ${to} are visible`);
  const { x, y } = await placeOf(SPIKE);
  await page.mouse.move(x, y);
  await loss.getByText('50', { exact: true }).waitFor();
  await loss.getByRole('img').focus();
  await page.keyboard.press('ArrowRight');
  await loss.getByText(new RegExp(`^step ${SPIKE + 1}: train/loss 0\\.`)).waitFor();
  await page.keyboard.press('ArrowLeft');
  await loss.getByText(`step ${SPIKE}: train/loss 50`, { exact: true }).waitFor();

  // A link with the zoom shows the same; "0" and a double click go back.
  await page.mouse.move(0, 0);
  const again = page.waitForResponse((response) => /metric=train%2Floss/.test(response.url()));
  await page.reload();
  await again;
  await untilDrawn(SPIKE, ({ curve }) => Math.min(...curve) < 0.2, 'the link shows the spike');
  await loss.getByRole('img').press('0');
  await notInAddress('steps');
  await zoomTo(NAN);
  await zoomTo(NAN);
  await zoomTo(NAN);
  await untilDrawn(NAN, ({ mark }) => mark.length > 0, 'the NaN has a mark among each point');
  const place = await placeOf(NAN);
  await page.mouse.move(place.x, place.y);
  await loss.getByText('not finite', { exact: true }).waitFor();
  await page.mouse.dblclick(place.x, place.y);
  await notInAddress('steps');

  // While a part comes the coarser curve stays, and what is no longer wanted is not waited for.
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const isLoss = (request) => /metric=train%2Floss/.test(request.url());
  await page.route(/metric=train%2Floss/, async (route) => {
    await held;
    await route.continue().catch(() => {}); // the page has given it up
  });
  const first = page.waitForRequest(isLoss);
  await loss.getByRole('img').press('+');
  await first;
  assert.ok((await drawnAt(SPIKE)).curve.length > 0, 'the coarser curve stays');
  const [dropped, second] = [page.waitForEvent('requestfailed', isLoss), page.waitForRequest(isLoss)];
  await loss.getByRole('img').press('+');
  await second;
  assert.equal((await dropped).url(), (await first).url());
  release();
  await page.unrouteAll({ behavior: 'wait' });
  await loss.getByRole('img').press('0');
  await notInAddress('steps');

  // A chart with an axis of its own is zoomed by itself.
  await chart('evaluation/accuracy').getByRole('img').press('+');
  await loss.getByRole('img').press('+');
  await inAddress('steps');
  const [begin, end] = steps();
  assert.ok(Math.abs(2 * (end - begin) - POINTS) < 10, `${begin} to ${end} is half of all steps`);
  await loss.getByRole('img').press('0');
  await notInAddress('steps');

  // Groups fold, and the address says which.
  await page.getByRole('button', { name: /^evaluation\/ \(/ }).click();
  await chart('evaluation/accuracy').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: /^gradients\/ \(/ }).click();
  await chart('gradients/layer_00').waitFor();
  await page.reload();
  await chart('gradients/layer_23').waitFor();
  assert.equal(await chart('evaluation/accuracy').count(), 0);
  assert.equal(await chart('gradients/layer_24').count(), 0);
  await page.getByRole('button', { name: /^Show 24 more of/ }).click();
  await chart('gradients/layer_47').waitFor();
  await page.goto(page.url().split('?')[0]);

  // The file has the spike among the greatest values.
  const row = page.getByRole('row', { name: /^train\/loss/ });
  await row.getByRole('cell', { name: '50', exact: true }).waitFor();
  await row.getByRole('cell', { name: '3', exact: true }).waitFor();
  await page.getByText(/the last value of each, the least \(low\) and the greatest \(high\)/).waitFor();
  const coming = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download CSV' }).click();
  const lines = readFileSync(await (await coming).path(), 'utf8').split('\r\n');
  assert.equal(lines[0], 'metric,rank,run,step,time,value,low,high,not_finite');
  const rows = lines.filter((line) => line.startsWith('train/loss,')).map((line) => line.split(','));
  assert.equal(Math.max(...rows.map((cells) => Number(cells[7]))), 50);
  assert.equal(rows.reduce((sum, cells) => sum + Number(cells[8]), 0), 3);

  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.locator(`:root[data-mantine-color-scheme="${scheme}"]`).waitFor();
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/charts-${scheme}.png`, fullPage: true });
    await assertAccessible(page, `charts, ${scheme}`);
  }
});
