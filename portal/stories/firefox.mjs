// Debian's Firefox for stories, by Marionette, its own protocol of remote control: Playwright drives builds of its own.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PREFERENCES = `
user_pref("marionette.port", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
`;

/** Starts Firefox on a profile of its own; `goto` and `evaluate` are as those of Playwright's pages. */
export async function launchFirefox(patience) {
  const profile = mkdtempSync(join(tmpdir(), 'tutti-firefox-'));
  writeFileSync(join(profile, 'user.js'), PREFERENCES);
  const firefox = spawn('firefox-esr', ['--headless', '--marionette', '--no-remote', '--profile', profile], { stdio: 'ignore' });
  const socket = connect(await portIn(profile, patience), '127.0.0.1');
  const answers = new Map();
  let received = Buffer.alloc(0);
  // Each message is its length, a colon and JSON: [1, id, error, result] answers [0, id, command, parameters].
  socket.on('data', (data) => {
    received = Buffer.concat([received, data]);
    for (;;) {
      const colon = received.indexOf(':');
      const end = colon + 1 + Number(received.subarray(0, colon));
      if (colon < 0 || received.length < end) return;
      const message = JSON.parse(received.subarray(colon + 1, end));
      received = received.subarray(end);
      if (!Array.isArray(message)) continue; // The greeting.
      const [, id, error, result] = message;
      const [resolve, reject] = answers.get(id);
      if (error) reject(new Error(`${error.error}: ${error.message}`));
      else resolve(result);
    }
  });
  let last = 0;
  const ask = (command, parameters = {}) =>
    new Promise((resolve, reject) => {
      answers.set(++last, [resolve, reject]);
      const text = JSON.stringify([0, last, command, parameters]);
      socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
  await ask('WebDriver:NewSession');
  await ask('WebDriver:SetTimeouts', { script: 30_000 * patience, pageLoad: 60_000 * patience });
  return {
    goto: (url) => ask('WebDriver:Navigate', { url }),
    async evaluate(does, argument) {
      const script = `const done = arguments[1];
        Promise.resolve((${does})(arguments[0])).then((value) => done({ value }), (error) => done({ error: String(error) }));`;
      const { value: answer } = await ask('WebDriver:ExecuteAsyncScript', { script, args: [argument ?? null], sandbox: null });
      if (answer.error) throw new Error(answer.error);
      return answer.value;
    },
    async close() {
      const ended = new Promise((resolve) => firefox.on('exit', resolve));
      await ask('Marionette:Quit', { flags: ['eForceQuit'] }).catch(() => firefox.kill());
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Firefox writes into its profile at which port it listens. */
async function portIn(profile, patience) {
  const end = Date.now() + 60_000 * patience;
  for (;;) {
    try {
      const port = Number(readFileSync(join(profile, 'MarionetteActivePort'), 'utf8'));
      if (port > 0) return port;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
