import { describe, expect, it } from 'vitest';
import { withoutName } from './jobText';

describe('withoutName', () => {
  it('takes the name and nothing else', () => {
    expect(withoutName('# mine\ncommand: x\n')).toBe('# mine\ncommand: x\n');
    expect(withoutName('name: a\ncommand: x\n')).toBe('command: x\n');
    expect(withoutName('command: x\n"name": a # first')).toBe('command: x\n');
    expect(withoutName('name: a\r\ncommand: x\r\n')).toBe('command: x\r\n');
  });

  it('takes a value of several lines whole', () => {
    expect(withoutName('name: >-\n  a\n\ncommand: x\n')).toBe('\ncommand: x\n');
    expect(withoutName('name:\n  a\ncommand: x\n')).toBe('command: x\n');
  });

  it('leaves names of others alone', () => {
    const text = 'jobs:\n  a:\n    name: step\ncommand: |\n  name: b\nname_of_mine: c\nnames: [a]\n';
    expect(withoutName(text)).toBe(text);
    expect(withoutName('#!/bin/sh\nname: a\n')).toBe('#!/bin/sh\nname: a\n');
  });
});
