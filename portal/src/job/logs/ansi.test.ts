import { expect, test } from 'vitest';
import { carried, pieces, plain } from './ansi';

test('colours and weights hold until they are reset', () => {
  expect(pieces('a\x1b[1;31mb\x1b[4mc\x1b[0md')).toEqual([
    { text: 'a', look: {} },
    { text: 'b', look: { bold: true, fg: 1 } },
    { text: 'c', look: { bold: true, fg: 1, underline: true } },
    { text: 'd', look: {} },
  ]);
  expect(pieces('\x1b[92;44mx\x1b[39;49my').map((piece) => [piece.look.fg, piece.look.bg])).toEqual([
    [10, 4],
    [undefined, undefined],
  ]);
});

test('256 and true colours are understood, with semicolons and with colons', () => {
  const first = (text: string) => pieces(text)[0]!.look;
  expect(first('\x1b[38;5;9mx').fg).toBe(9);
  expect(first('\x1b[38;5;196mx').fg).toEqual([255, 0, 0]);
  expect(first('\x1b[48;5;232mx').bg).toEqual([8, 8, 8]);
  expect(first('\x1b[38;2;1;2;3;1mx')).toEqual({ fg: [1, 2, 3], bold: true });
  expect(first('\x1b[38:2::1:2:3mx').fg).toEqual([1, 2, 3]);
  expect(first('\x1b[38:2:1:2:3mx').fg).toEqual([1, 2, 3]);
  expect(first('\x1b[38;5mx').fg).toBe(0);
});

test('other sequences leave no trace, whole or cut', () => {
  expect(plain('\x1b[2K\x1b[1A\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq\x1b\\c\x1b(Bd\x1b[?25l')).toBe('abcd');
  expect(plain('a\x1b')).toBe('a');
  expect(plain('a\x1b[31')).toBe('a');
  expect(plain('a\x1b]0;never ends')).toBe('a');
});

test('what turns the direction of text, or hides, is named', () => {
  expect(plain('a\u202eb')).toBe('a⟨U+202E⟩b');
  expect(plain('a\u0000b\tc')).toBe('a␀b\tc');
  expect(plain('a\u200bb\u0085')).toBe('a⟨U+200B⟩b⟨U+0085⟩');
});

test('the pieces make up the plain text', () => {
  const text = '\x1b[31mred \u2066\x1b[0m end\x1b[';
  expect(pieces(text).map((piece) => piece.text).join('')).toBe(plain(text));
});

test('a line goes on with the colours of the line before', () => {
  expect(carried('\x1b[1;38;5;196mred')).toBe('\x1b[1;38;2;255;0;0m');
  expect(carried('\x1b[31mred\x1b[m')).toBe('');
});
