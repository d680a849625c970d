// A browser for stories: Debian's Chromium on a profile of its own, signed in by a link as a user is.
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium } from 'playwright-core';

// Browsers know all names below localhost; what asks beside them, page.request, has only those that the system knows.
const { lookup } = dns.promises;
dns.promises.lookup = async (name, options) => {
  if (!name.endsWith('.localhost')) return lookup(name, options);
  const found = { address: '127.0.0.1', family: 4 };
  return options?.all ? [found] : found;
};

const ARGUMENTS = [
  '--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

/** Runs `story({ page, context, link, origin, patience })`; ends the process with 1 and says why if it throws. */
export async function runStory(story) {
  const link = process.env.TUTTI_PORTAL_LINK;
  const patience = Number(process.env.TUTTI_TEST_PATIENCE ?? 1);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGUMENTS });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(20_000 * patience);
  const page = await context.newPage();
  const faults = [];
  // A script that throws, or that the content security policy stops, fails every story.
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
  });
  let failure = null;
  try {
    await story({ browser, context, page, link, origin: new URL(link).origin, patience });
    if (faults.length > 0) throw new Error(`the page complains: ${faults.join('; ')}`);
  } catch (error) {
    failure = error;
    if (process.env.TUTTI_SCREENSHOT) await page.screenshot({ path: process.env.TUTTI_SCREENSHOT }).catch(() => {});
  }
  await browser.close();
  if (!failure) return;
  console.error(failure.stack);
  process.exit(1);
}

/** Throws if axe finds something serious on the page, which is named `what`. */
export async function assertAccessible(page, what) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ').slice(0, 400)}`);
  assert.deepEqual(told, [], `what axe finds on ${what}`);
}
