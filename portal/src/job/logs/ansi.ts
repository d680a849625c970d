// Text with terminal escape sequences, as pieces with a look each. Colours and weights (SGR) count; every other
// sequence (cursor movements, titles, links) is dropped. Characters that would disturb their surroundings, as
// those that turn the direction of text, are shown by name: what a job prints is hostile.

/** A colour: one of the 16 of terminals, or red, green and blue. */
export type Color = number | readonly [number, number, number];

export interface Look {
  fg?: Color;
  bg?: Color;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

export interface Piece {
  text: string;
  look: Look;
}

// CSI, then OSC, then DCS and its kind, each also where the text ends within it, then the short ones.
const ESCAPE =
  /\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|$)|\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[PX^_][^\x1b]*(?:\x1b\\|$)|[ -/]*[0-~])?/g;
const UNSAFE = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
const EACH_UNSAFE = new RegExp(UNSAFE.source, 'g');
const SGR = /^\x1b\[([\d;:]*)m$/;

/** Whether `text` is shown as it is. */
export function isPlain(text: string): boolean {
  return !UNSAFE.test(text);
}

/** What is seen of `text`: the pieces' text, joined. */
export function plain(text: string): string {
  return UNSAFE.test(text) ? named(text.replace(ESCAPE, '')) : text;
}

function named(text: string): string {
  return text.replace(EACH_UNSAFE, (one) => {
    const code = one.charCodeAt(0);
    if (code === 8 || code === 10 || code === 13) return '';
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}

/** `text` in pieces, as a terminal would show them. */
export function pieces(text: string): Piece[] {
  if (!UNSAFE.test(text)) return text ? [{ text, look: {} }] : [];
  const found: Piece[] = [];
  let look: Look = {};
  let from = 0;
  const take = (to: number) => {
    const shown = named(text.slice(from, to));
    if (shown) found.push({ text: shown, look });
  };
  for (const match of text.matchAll(ESCAPE)) {
    take(match.index);
    from = match.index + match[0].length;
    const sgr = SGR.exec(match[0]);
    if (sgr) look = changed(look, sgr[1]!);
  }
  take(text.length);
  return found;
}

/** The sequence that a line begins with after `text`: terminals go on with the colours of the line before. */
export function carried(text: string): string {
  let look: Look = {};
  for (const [sequence] of text.matchAll(ESCAPE)) {
    const sgr = SGR.exec(sequence);
    if (sgr) look = changed(look, sgr[1]!);
  }
  return sequenceOf(look);
}

function sequenceOf(look: Look): string {
  const codes: string[] = [];
  FLAGS.forEach(([flag, code]) => look[flag] && codes.push(String(code)));
  if (look.fg !== undefined) codes.push(colorCode(look.fg, 38));
  if (look.bg !== undefined) codes.push(colorCode(look.bg, 48));
  return codes.length > 0 ? `\x1b[${codes.join(';')}m` : '';
}

const FLAGS = [
  ['bold', 1], ['dim', 2], ['italic', 3], ['underline', 4], ['inverse', 7], ['strike', 9],
] as const;

function colorCode(color: Color, kind: number): string {
  return typeof color === 'number' ? `${kind};5;${color}` : `${kind};2;${color.join(';')}`;
}

function changed(before: Look, parameters: string): Look {
  let look: Look = { ...before };
  // "38:2::1:2:3" is "38;2;1;2;3" of those who write it by the standard.
  const groups = parameters.split(';').map((group) => group.split(':'));
  for (let at = 0; at < groups.length; at += 1) {
    const group = groups[at]!;
    const code = Number(group[0] || 0);
    if (code === 0) look = {};
    else if (code === 38 || code === 48) {
      const within = group.length > 1;
      const rest = within ? group.slice(1) : groups.slice(at + 1).map((next) => next[0]!);
      if (within && rest[0] === '2' && rest.length > 4) rest.splice(1, 1);
      const [color, used] = extendedColor(rest.map(Number));
      if (!within) at += used;
      if (color !== undefined) look[code === 38 ? 'fg' : 'bg'] = color;
    } else if (code === 22) look = { ...look, bold: undefined, dim: undefined };
    else if (code === 39) look.fg = undefined;
    else if (code === 49) look.bg = undefined;
    else if (code >= 30 && code < 38) look.fg = code - 30;
    else if (code >= 40 && code < 48) look.bg = code - 40;
    else if (code >= 90 && code < 98) look.fg = code - 82;
    else if (code >= 100 && code < 108) look.bg = code - 92;
    else {
      for (const [flag, on] of FLAGS) {
        if (code === on) look[flag] = group[1] !== '0';
        if (code === on + 20) look[flag] = undefined;
      }
      if (code === 21) look.underline = true;
    }
  }
  return look;
}

/** The colour that `5;N` or `2;R;G;B` names, and how many parameters that took. */
function extendedColor(rest: number[]): [Color | undefined, number] {
  const byte = (value: number | undefined) => Math.min(255, Math.max(0, value || 0));
  if (rest[0] === 2) return [[byte(rest[1]), byte(rest[2]), byte(rest[3])], 4];
  if (rest[0] !== 5) return [undefined, 1];
  const index = byte(rest[1]);
  if (index < 16) return [index, 2];
  if (index >= 232) {
    const grey = 8 + 10 * (index - 232);
    return [[grey, grey, grey], 2];
  }
  const level = (step: number) => (step === 0 ? 0 : 55 + 40 * step);
  const cube = index - 16;
  return [[level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)], 2];
}
