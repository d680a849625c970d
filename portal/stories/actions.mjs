// What a person does on the pages, by clicks and keys. DO names one of them; what came of it the story asks the service.
import assert from 'node:assert/strict';
import { runStory } from './browser.mjs';

const { DO, JOB, JOBS, FOLDER } = process.env;

const ACTIONS = {
  async rerun({ page, open, jobs }) {
    await open(`/jobs/${JOB}`);
    await page.getByRole('button', { name: 'Rerun', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('as a new job').waitFor();
    await dialog.getByRole('button', { name: 'Not now' }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal((await jobs()).length, 1, 'it was rerun without an answer');
    await page.getByRole('button', { name: 'Rerun', exact: true }).click();
    await dialog.getByRole('button', { name: 'Rerun', exact: true }).click();
    await page.waitForURL((url) => !url.pathname.endsWith(JOB));
    return page.url().split('/').at(-1);
  },

  async bulk({ page, open }) {
    const [runs, waits, ended, other] = JOBS.split(',');
    const bar = page.getByRole('group', { name: 'Chosen jobs' });
    const choose = async (...all) => {
      for (const job of all) await page.locator(`#job-${job}`).getByRole('checkbox').click();
      await bar.getByText(`${all.length} chosen`).waitFor();
    };
    await open('/');
    await choose(ended, other);
    await bar.getByRole('link', { name: 'Compare' }).click();
    await page.waitForURL(/\/compare\?jobs=/);
    const compared = new URL(page.url()).searchParams.get('jobs').split(',');
    assert.deepEqual(compared.sort(), [ended, other].sort());
    await page.getByText('echo first').first().waitFor();
    await page.getByText('echo second').first().waitFor();

    await open('/');
    await choose(runs, waits, ended);
    await bar.getByRole('button', { name: 'Cancel' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('1 job runs now and will be stopped.').waitFor();
    await dialog.getByText('1 job waits and will not start.').waitFor();
    await dialog.getByText('1 job has ended and stays as it is.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel 2 jobs' }).click();
    await page.getByText('2 jobs canceled.').waitFor();

    await choose(ended, other);
    await bar.getByRole('button', { name: 'Rerun' }).click();
    await dialog.getByRole('button', { name: 'Rerun 2 jobs' }).click();
    const outcome = page.getByRole('status').filter({ hasText: '2 jobs rerun' });
    await outcome.waitFor();
    const links = await outcome.getByRole('link').evaluateAll((all) => all.map((one) => one.textContent));
    return links.join(',');
  },

  async cordon({ page, open }) {
    await open('/nodes');
    await page.getByRole('button', { name: 'Cordon n1', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Why').fill('its fan is loud');
    await dialog.getByRole('button', { name: 'Cordon n1', exact: true }).click();
    await page.getByText('No job starts on n1 any more.').waitFor();
    await page.getByText(/its fan is loud/).first().waitFor();
    return 'cordoned';
  },

  async uncordon({ page, open }) {
    await open('/nodes');
    await page.getByRole('button', { name: 'Uncordon n1' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('its fan is loud').waitFor();
    await dialog.getByRole('button', { name: 'Uncordon n1' }).click();
    await page.getByRole('button', { name: 'Cordon n1', exact: true }).waitFor();
    return 'uncordoned';
  },

  // A folder as the mouse brings it from the desktop: the browser itself makes the page's DataTransfer of it.
  async drop({ page, context, open }) {
    await open('/submit');
    const box = await page.getByText('Drop a job file').boundingBox();
    const devtools = await context.newCDPSession(page);
    const data = { items: [], files: [FOLDER], dragOperationsMask: 1 };
    for (const type of ['dragEnter', 'dragOver', 'drop']) {
      await devtools.send('Input.dispatchDragEvent', { type, x: box.x + 20, y: box.y + 10, data });
    }
    await page.getByText(/^Folder “.*”, 4 files\./).waitFor();
    await page.getByText('Code “src”: 2 files').waitFor();
    await page.getByText('The service would take this job').waitFor();
    await page.getByRole('button', { name: 'Submit', exact: true }).click();
    await page.waitForURL(/\/jobs\//);
    return page.url().split('/').at(-1);
  },

  async keys({ page, open, jobs }) {
    const [newest, , oldest] = (await jobs()).map((job) => job.id);
    const isCurrent = (job) => page.locator(`#job-${job}[data-current]`).waitFor();
    await open('/');
    await page.locator(`#job-${oldest}`).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('no such job');
    await page.getByText('No job matches').waitFor();
    await page.keyboard.press('Escape'); // clears the search
    await page.locator(`#job-${oldest}`).waitFor();
    await page.keyboard.press('Escape');
    for (const key of ['j', 'j', 'j']) await page.keyboard.press(key);
    await isCurrent(oldest);
    await page.keyboard.press('x');
    const bar = page.getByRole('group', { name: 'Chosen jobs' });
    await bar.getByText('1 chosen').waitFor();
    await page.keyboard.press('Escape');
    await bar.waitFor({ state: 'detached' });
    await page.keyboard.press('x');
    await bar.getByRole('button', { name: 'Cancel' }).press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Keep them' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('1 job canceled.').waitFor();
    await page.keyboard.press('k');
    await page.keyboard.press('k');
    await isCurrent(newest);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/jobs/${newest}`);
    return oldest;
  },

  async typing({ page, open, patience }) {
    let checks = 0;
    page.on('request', (request) => (checks += request.url().includes('/v1/job-checks') ? 1 : 0));
    await open('/submit');
    const editor = page.getByLabel('Job file').first();
    await editor.fill('type: command\ncomand: ls\ncompute: local'); // at once: a machine that stalls makes no pause of it
    const fault = page.getByRole('listitem').filter({ hasText: 'unknown key "comand"' });
    await fault.waitFor();
    assert.equal(checks, 1, 'it is asked once one pauses');
    assert.equal(await editor.getAttribute('aria-invalid'), 'true');
    const described = page.locator(`#${await editor.getAttribute('aria-describedby')}`);
    assert.match(await described.textContent(), /Line 2: unknown key "comand"/);
    assert.equal(await described.evaluate((element) => element.closest('[aria-live]').ariaLive), 'polite');
    const inText = page.locator('[aria-hidden]').getByText('unknown key "comand"');
    const [line, mark] = [await page.getByText('2', { exact: true }).first().boundingBox(), await inText.boundingBox()];
    assert.ok(Math.abs(line.y - mark.y) < 8, `what is wrong stands at ${mark.y}, its line at ${line.y}`);
    await fault.getByRole('button', { name: 'Line 2' }).press('Enter');
    const selected = await editor.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
    assert.equal(selected, 'comand');
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/typing.png` });
    await page.keyboard.insertText('command');
    await page.getByText('The service would take this job').waitFor();
    assert.equal(await editor.getAttribute('aria-invalid'), 'false');

    await editor.press('End');
    await page.waitForTimeout(1_500 * patience); // a check that must not come would have by then
    assert.equal(checks, 2, 'nothing is asked while the text is what was checked last');
    const hide = (state) =>
      page.evaluate((now) => {
        Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => now });
        document.dispatchEvent(new Event('visibilitychange'));
      }, state);
    await hide('hidden');
    await editor.press('End');
    await page.keyboard.type('\ncode: ./src');
    await page.waitForTimeout(1_500 * patience);
    assert.equal(checks, 2, 'a page that is hidden asks nothing');
    await hide('visible');
    await page.getByRole('listitem').filter({ hasText: 'drop the folder with it and the job file here' }).waitFor();
    assert.equal(await page.getByText('/portal').count(), 0);
    return String(checks);
  },
};

await runStory(async ({ page, context, link, origin, patience }) => {
  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  const open = (path) => page.goto(`${origin}/portal${path}`);
  const jobs = async () => (await (await page.request.get(`${origin}/v1/jobs`)).json()).jobs;
  console.log(await ACTIONS[DO]({ page, context, open, jobs, patience }));
});
