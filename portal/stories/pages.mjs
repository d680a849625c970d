// Each page over real jobs: what is on it, and that it can be used. PAGE names one of them.
import assert from 'node:assert/strict';
import { assertAccessible, runStory } from './browser.mjs';

const { PAGE, SHOTS } = process.env;
const id = (name) => process.env[`JOB_${name.toUpperCase()}`];

/** What is looked at on each page, after its address has been opened. */
const PAGES = {
  jobs: {
    path: () => '/',
    async look(page) {
      const rows = page.getByRole('row').filter({ has: page.getByRole('checkbox') });
      const count = () => rows.filter({ has: page.getByRole('link') }).count();
      await page.getByRole('link', { name: 'running' }).first().waitFor();
      assert.equal(await count(), 6);
      await page.keyboard.press('/');
      await page.keyboard.type('shapes fail');
      await page.getByRole('link', { name: 'done' }).first().waitFor({ state: 'detached' });
      assert.equal(await count(), 1);
      assert.match(page.url(), /shapes/, 'the search is in the address');
      await page.keyboard.press('Escape');
      await page.reload();
      await page.getByRole('link', { name: 'failed' }).first().waitFor();
      await page.goto(page.url().split('?')[0]);
      await page.getByRole('link', { name: 'done' }).first().waitFor();
    },
  },
  overview: {
    path: () => `/jobs/${id('running')}`,
    async look(page) {
      await page.getByRole('heading', { name: 'running' }).waitFor();
      await page.getByText('4 processes on 2 nodes').or(page.getByText('2 processes on 2 nodes')).first().waitFor();
      await page.getByRole('link', { name: /^Rank 1 on n/ }).or(page.getByRole('button', { name: /^Rank 1 on n/ })).first().waitFor();
      await page.getByText('loss', { exact: true }).first().waitFor();
    },
  },
  why: {
    path: () => `/jobs/${id('failed')}`,
    async look(page) {
      await page.getByText('the disk of <b>rank 1</b> is full').first().waitFor();
      await page.getByRole('link', { name: /in the logs/ }).click();
      await page.getByText('RuntimeError: the disk of <b>rank 1</b> is full').last().waitFor();
      assert.match(page.url(), /logs/);
      await page.goto(new URL(`/portal/jobs/${id('waiting')}`, page.url()).href);
      await page.getByText(/Waits for 4 nodes/).first().waitFor();
    },
  },
  logs: {
    path: () => `/jobs/${id('done')}/logs`,
    async look(page) {
      await page.getByText('step 39 of 40:').first().waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('step 7 of');
      await page.getByText('2 lines', { exact: true }).waitFor();
      await page.keyboard.press('Enter');
      await page.getByText(/^[12] of 2 lines$/).waitFor();
      await page.getByLabel('Only these lines').check();
      await page.getByText('step 39 of 40:').first().waitFor({ state: 'detached' });
    },
  },
  metrics: {
    path: () => `/jobs/${id('done')}/metrics`,
    async look(page) {
      await page.getByText('accuracy', { exact: true }).first().waitFor();
      assert.ok((await page.locator('canvas').count()) >= 2);
      await page.getByText('By time', { exact: true }).click();
      await page.waitForURL(/x=time/);
    },
  },
  'no metrics': {
    path: () => `/jobs/${id('waiting')}/metrics`,
    async look(page) {
      await page.getByText('TUTTI_METRICS_FILE').first().waitFor();
    },
  },
  files: {
    path: () => `/jobs/${id('done')}/files`,
    async look(page) {
      await page.getByText('table.csv').click();
      await page.getByRole('columnheader', { name: 'epoch' }).waitFor();
      await page.getByText('page.html').click();
      await page.getByText('<script>alert(1)</script>').first().waitFor();
      const href = await page.getByRole('link', { name: 'Download' }).first().getAttribute('href');
      const file = await page.request.get(new URL(href, page.url()).href);
      assert.equal(file.headers()['content-disposition'], 'attachment');
      assert.equal(file.headers()['content-security-policy'], 'sandbox');
    },
  },
  code: {
    path: () => `/jobs/${id('running')}/code`,
    async look(page) {
      await page.getByText('train.py').first().waitFor();
      await page.getByText('TUTTI_METRICS_FILE').first().waitFor();
      await page.getByText('Job file', { exact: true }).click();
      await page.getByText('experiment_name').first().waitFor();
    },
  },
  steps: {
    path: () => `/jobs/${id('pipeline')}/steps`,
    async look(page) {
      await page.getByRole('link', { name: /prepare/ }).first().waitFor();
      await page.getByRole('link', { name: /train/ }).first().click();
      await page.getByRole('tab', { name: 'Logs' }).waitFor();
    },
  },
  trials: {
    path: () => `/jobs/${id('sweep')}/trials`,
    async look(page) {
      await page.getByText('4 trials').first().waitFor();
      await page.getByText(/^Best loss so far/).first().waitFor();
      await page.getByRole('link', { name: 'trial-3' }).first().waitFor();
    },
  },
  nodes: {
    path: () => '/nodes',
    async look(page) {
      await page.getByRole('link', { name: id('running') }).first().waitFor();
      await page.getByText(/waits for 4 nodes/).first().waitFor();
      await page.getByRole('button', { name: 'Check' }).last().click();
      await page.getByText(/^Nothing is wrong with n\d/).first().waitFor();
    },
  },
  faults: {
    path: () => '/jobs/100%25',
    async look(page) {
      await page.getByText('There is no job 100%').waitFor();
      await page.route('**/assets/SubmitPage*', (route) => route.abort());
      await page.getByRole('link', { name: 'Submit' }).click();
      await page.getByRole('button', { name: 'Reload' }).waitFor();
      await page.unrouteAll();
      await page.getByRole('button', { name: 'Reload' }).click();
      await page.getByLabel('Job file').first().waitFor();
      assert.equal(await page.title(), 'Submit – tutti');
    },
  },
  compare: {
    path: () => `/compare?jobs=${id('done')},${id('running')}`,
    async look(page) {
      await page.getByText('accuracy', { exact: true }).first().waitFor();
      await page.getByText(/python3 train.py 40/).first().waitFor();
    },
  },
  submit: {
    path: () => `/submit?from=${id('done')}`,
    async look(page) {
      const editor = page.getByLabel('Job file').first();
      await editor.waitFor();
      assert.match(await editor.inputValue(), /shapes/);
      await editor.fill('type: command\ncomand: echo hello\ncompute: local\n');
      await page.getByRole('button', { name: 'Check' }).click();
      await page.getByText(/unknown key "comand"/).first().waitFor();
      await editor.fill('type: command\ncommand: echo hello from the page\ncompute: local\n');
      await page.reload();
      await page.getByText('This is what you had typed here before').waitFor();
      await page.getByRole('button', { name: 'Submit', exact: true }).click();
      await page.getByRole('tab', { name: 'Logs' }).waitFor();
      await page.getByText('echo hello from the page').first().waitFor();
    },
  },
};

await runStory(async ({ page, link, origin }) => {
  const { path, look } = PAGES[PAGE];
  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  const address = `${origin}/portal${path()}`;
  await page.goto(address);
  await look(page);
  await page.goto(address);
  for (const [name, scheme, size] of [
    ['light', 'light', { width: 1280, height: 800 }],
    ['dark', 'dark', { width: 1280, height: 800 }],
    ['phone', 'light', { width: 390, height: 844 }],
  ]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize(size);
    await page.getByRole('main').waitFor();
    await page.waitForLoadState('networkidle', { timeout: 2000 }).catch(() => {}); // output that is followed keeps a connection
    await page.waitForTimeout(300);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/${PAGE}-${name}.png` });
    await assertAccessible(page, `${PAGE}, ${name}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 1, `${PAGE} is ${wide} pixels too wide at ${size.width}`);
  }
});
