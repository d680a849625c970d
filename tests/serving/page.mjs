// Opens a page of examples/serve in Debian's Chromium, gives it images, and prints what it shows of each: {status, rows: [[class, share]]}.
//   page.mjs PACKAGE ADDRESS IMAGE…     PACKAGE: the package.json beside whose node_modules Playwright lies
import { createRequire } from 'node:module';

const [package_, address, ...images] = process.argv.slice(2);
const { chromium } = createRequire(package_)('playwright-core');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000 * Number(process.env.TUTTI_TEST_PATIENCE ?? 1));
  await page.goto(address);
  const shown = [];
  for (const image of images) {
    await page.setInputFiles('input[type=file]', image);
    await page.waitForFunction(() => !['', '…'].includes(document.querySelector('[role=status]').textContent) || document.querySelectorAll('tr').length > 0);
    await page.waitForFunction(() => document.querySelector('[role=status]').textContent !== '…');
    shown.push(await page.evaluate(() => ({
      status: document.querySelector('[role=status]').textContent,
      rows: [...document.querySelectorAll('tr')].map((row) => [row.cells[0].textContent, row.cells[2].textContent]),
    })));
  }
  console.log(JSON.stringify(shown));
} finally {
  await browser.close();
}
