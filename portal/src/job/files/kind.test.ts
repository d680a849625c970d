import { describe, expect, it } from 'vitest';
import { fileAddress, kindOf, textOf } from './kind';

describe('kindOf', () => {
  it('goes by the name', () => {
    expect(kindOf('outputs/a.PNG')).toBe('image');
    expect(kindOf('outputs/a.svg')).toBe('text');
    expect(kindOf('outputs/tb/events.out.tfevents.1732.host.1')).toBe('events');
    expect(kindOf('outputs/a.b/readme')).toBe('text');
    expect(kindOf('t.tsv')).toBe('table');
  });
});

describe('textOf', () => {
  const bytes = (text: string) => new TextEncoder().encode(text);

  it('reads UTF-8, also where its beginning ends within a character', () => {
    expect(textOf(bytes('grüße'), true)).toBe('grüße');
    expect(textOf(bytes('grü').subarray(0, 3), false)).toBe('gr');
  });

  it('takes a few bytes of another encoding, and nothing binary', () => {
    expect(textOf(new Uint8Array([...bytes('x'.repeat(100)), 0xfc]), true)).toBe(`${'x'.repeat(100)}\uFFFD`);
    expect(textOf(new Uint8Array([1, 2, 0, 3]), true)).toBeNull();
    expect(textOf(new Uint8Array(100).fill(0xff), true)).toBeNull();
  });
});

describe('fileAddress', () => {
  it('encodes each part of a path', () => {
    expect(fileAddress('j', 'outputs/a b#?%.txt')).toBe('/v1/jobs/j/files/outputs/a%20b%23%3F%25.txt');
  });
});
