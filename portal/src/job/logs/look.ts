// How a piece of output is drawn: colours that stay readable on a light page and on a dark one.
import type { CSSProperties } from 'react';
import type { Color, Look } from './ansi';

type Rgb = readonly [number, number, number];

// The 16 colours where a background is given too; text on the page's own background has those of logs.css.
const NAMED: readonly Rgb[] = [
  [0, 0, 0], [205, 49, 49], [13, 138, 80], [176, 140, 0], [36, 114, 200], [188, 63, 188], [17, 130, 160],
  [229, 229, 229], [102, 102, 102], [241, 76, 76], [35, 209, 139], [245, 245, 67], [59, 142, 234], [214, 112, 214],
  [41, 184, 219], [255, 255, 255],
];
const READABLE = 4.5; // the contrast that WCAG asks for

export interface Drawn {
  className?: string;
  style?: CSSProperties;
}

export function draw(look: Look): Drawn {
  const classes: string[] = [];
  if (look.bold) classes.push('log-bold');
  if (look.italic) classes.push('log-italic');
  if (look.underline) classes.push('log-underline');
  if (look.strike) classes.push('log-strike');
  const style = colors(look, classes);
  return { className: classes.length > 0 ? classes.join(' ') : undefined, style };
}

function colors(look: Look, classes: string[]): CSSProperties | undefined {
  const fg = look.inverse ? look.bg : look.fg;
  const bg = look.inverse ? (look.fg ?? 7) : look.bg;
  if (bg !== undefined) return onBackground(rgb(bg), fg === undefined ? undefined : rgb(fg));
  if (fg === undefined) {
    if (look.dim) classes.push('log-dim');
    return undefined;
  }
  if (typeof fg === 'number') {
    classes.push(`log-color-${fg}`);
    return undefined;
  }
  classes.push('log-color');
  return { '--log-color': css(fg) } as CSSProperties;
}

function onBackground(bg: Rgb, fg: Rgb | undefined): CSSProperties {
  const dark: Rgb = [0, 0, 0];
  const light: Rgb = [255, 255, 255];
  const better = contrast(bg, dark) >= contrast(bg, light) ? dark : light;
  return { background: css(bg), color: css(fg && contrast(bg, fg) >= READABLE ? fg : better) };
}

function rgb(color: Color): Rgb {
  return typeof color === 'number' ? NAMED[color]! : color;
}

function css(color: Rgb): string {
  return `rgb(${color.join(' ')})`;
}

/** By WCAG, from 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(color: Rgb): number {
  const [red, green, blue] = color.map((byte) => {
    const part = byte / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The hue of a rank, far from those of its neighbours. */
export function hueOf(rank: number): number {
  return Math.round((rank * 137.508 + 20) % 360);
}
