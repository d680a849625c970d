// Does what lines on standard input say, one after the other, and answers each with a line: benchmarks/portal/measure.
import { createInterface } from 'node:readline';
import { runStory } from './browser.mjs';

await runStory(async ({ page, context, link, origin }) => {
  await page.goto(link);
  await page.getByRole('link', { name: 'Jobs' }).first().waitFor();
  const devtools = await context.newCDPSession(page);
  const open = (path) => page.goto(`${origin}/portal${path}`, { waitUntil: 'commit' });
  const shown = async ({ path, text, role }) => {
    await page.goto('about:blank');
    const began = performance.now();
    await open(path);
    const sought = text ? page.getByText(text, { exact: false }).last() : page.getByRole(role).nth(5);
    await sought.waitFor();
    return performance.now() - began;
  };
  const does = {
    leave: async () => (await page.goto('about:blank'), {}),
    open: async ({ path }) => (await open(path), {}),
    shown: async (what) => ({ ms: await shown(what) }),
    async paint({ path }) {
      await page.goto('about:blank');
      await open(path);
      const ms = await page.evaluate(
        () =>
          new Promise((resolve) => {
            new PerformanceObserver((list) => {
              for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') resolve(startTime);
            }).observe({ type: 'paint', buffered: true });
          }),
      );
      return { ms };
    },
    async scroll(what) {
      await shown(what);
      await page.mouse.move(640, 600);
      const frames = page.evaluate(
        () =>
          new Promise((resolve) => {
            const times = [];
            const see = (now) => {
              times.push(now);
              if (times.length < 240) requestAnimationFrame(see);
              else resolve(times.slice(1).map((time, at) => time - times[at]));
            };
            requestAnimationFrame(see);
          }),
      );
      for (let turn = 0; turn < 200; turn += 1) {
        await page.mouse.wheel(0, -120);
        await page.waitForTimeout(16);
      }
      const sorted = (await frames).sort((a, b) => a - b);
      return { median: sorted[120], p95: sorted[Math.floor(sorted.length * 0.95)], most: sorted.at(-1) };
    },
    async heap() {
      await devtools.send('HeapProfiler.collectGarbage');
      const { usedSize } = await devtools.send('Runtime.getHeapUsage');
      return { bytes: usedSize };
    },
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const what = JSON.parse(line);
    process.stdout.write(`${JSON.stringify(await does[what.measure](what))}\n`);
  }
});
