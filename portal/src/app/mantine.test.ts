import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SOURCES = join(__dirname, '..');
const STYLES = join(SOURCES, '../node_modules/@mantine/core/styles');

// What components of those have no style of their own, and are made of.
const MADE_OF: Record<string, string[]> = {
  MultiSelect: ['PillsInput', 'Pill', 'Combobox', 'ScrollArea', 'Input', 'CloseButton'],
  NativeSelect: ['Input'],
  Select: ['Combobox', 'ScrollArea', 'Input', 'CloseButton'],
  TextInput: ['Input'],
  Modal: ['ModalBase', 'Overlay', 'Paper'],
  Checkbox: ['InlineInput'],
  Switch: ['InlineInput'],
  SegmentedControl: ['FloatingIndicator'],
};

test('every component of Mantine that a page uses has its styles', () => {
  const there = readFileSync(join(SOURCES, 'app/mantine.css'), 'utf8');
  const missing = new Set<string>();
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.tsx')) continue;
    const text = readFileSync(join(SOURCES, file), 'utf8');
    for (const [, names] of text.matchAll(/import (?:type )?\{([^}]*)\} from '@mantine\/core'/g)) {
      for (const name of names!.match(/\b[A-Z]\w*/g) ?? []) {
        const needed = existsSync(join(STYLES, `${name}.css`)) ? [name] : [];
        for (const style of [...needed, ...(MADE_OF[name] ?? [])]) {
          if (!there.includes(`/${style}.css'`)) missing.add(style);
        }
      }
    }
  }
  expect([...missing]).toEqual([]);
});
