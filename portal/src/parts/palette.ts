// Colours of curves. They were searched for the greatest least difference (CIE76, 20 and more) between any two of
// them to people with each kind of colour blindness, at a contrast of 3:1 and more with the page; the test checks it.

export type Scheme = 'light' | 'dark';

export const BACKGROUND: Record<Scheme, string> = { light: '#ffffff', dark: '#242424' };

export const COLORS: Record<Scheme, readonly string[]> = {
  light: ['#0072b2', '#e05a00', '#660052', '#bd7584', '#0b0b84', '#9d0aff', '#8f1d00', '#452821'],
  dark: ['#56b4e9', '#e08700', '#0aff6c', '#ad33ff', '#efe5be', '#0b843b', '#808080', '#bee5ef'],
};

const DASHES: readonly number[][] = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

export interface Stroke {
  color: string;
  dash: number[];
}

/** How the curve with this number is drawn: after eight the colours come again, with dashes. */
export function strokeOf(index: number, scheme: Scheme): Stroke {
  const colors = COLORS[scheme];
  const round = Math.floor(index / colors.length) % DASHES.length;
  return { color: colors[index % colors.length]!, dash: DASHES[round]! };
}
