import { readFileSync } from 'node:fs';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// In development `npm run dev` passes calls on to the service whose state lies in TUTTI_HOME, with its token.
function service(): { address: string; token: string } | undefined {
  try {
    return JSON.parse(readFileSync(`${process.env.TUTTI_HOME}/service.json`, 'utf8'));
  } catch {
    return undefined;
  }
}

const target = service();

export default defineConfig({
  base: '/portal/',
  plugins: [react()],
  build: {
    outDir: process.env.TUTTI_PORTAL_OUT ?? 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: scripts or styles
    modulePreload: { polyfill: false },
  },
  server: target && {
    // The service has a certificate of its own.
    proxy: {
      '/v1': { target: target.address, secure: false, headers: { Authorization: `Bearer ${target.token}` } },
    },
  },
  test: { include: ['src/**/*.test.{ts,tsx}'], testTimeout: 60_000 },
});
