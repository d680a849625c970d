// Where a value lies on an axis, from 0 (bottom) to 1 (top), and what the axis says.
import { number } from '../../parts/format';

export interface Tick {
  at: number;
  label: string;
}

export interface Axis {
  name: string;
  kind: 'linear' | 'log' | 'category';
  /** The place of a value; null of one that the axis does not have. */
  place(value: string | null): number | null;
  /** The value at a place, to write it and to keep it in an address. */
  valueAt(place: number): string;
  ticks: Tick[];
  /** How far one step of a key goes. */
  step: number;
}

const DECADES = 100; // the largest by the smallest value from which on an axis is logarithmic
const MOST_CATEGORIES = 40;

export function isNumeric(value: string): boolean {
  return value.trim() !== '' && Number.isFinite(Number(value));
}

/** How a parameter is drawn from its search space. */
export interface Drawn {
  type: string;
  values: string[]; // of a choice, in their order
}

export function axisOf(name: string, values: (string | null)[], drawn?: Drawn): Axis {
  const known = values.filter((value) => value != null);
  const choices = drawn?.type === 'choice' ? drawn.values : [];
  if (choices.length > 0 || known.some((value) => !isNumeric(value))) {
    return categories(name, inOrder([...new Set([...choices, ...known])], choices));
  }
  const numbers = known.map(Number);
  const low = numbers.reduce((a, b) => Math.min(a, b), Infinity);
  const high = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
  if (numbers.length === 0) return linear(name, 0, 1);
  if (low === high) return linear(name, low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2);
  const isLog = drawn ? drawn.type.includes('log') : high / low >= DECADES;
  return low > 0 && isLog ? log(name, low, high) : linear(name, low, high);
}

/** Numbers by size, other values as they were written. */
function inOrder(values: string[], choices: string[]): string[] {
  if (values.every(isNumeric)) return values.sort((a, b) => Number(a) - Number(b));
  const place = (value: string) => (choices.includes(value) ? choices.indexOf(value) : Infinity);
  return values.sort((a, b) => place(a) - place(b) || a.localeCompare(b) || 0);
}

function categories(name: string, values: string[]): Axis {
  const places = new Map(values.map((value, index) => [value, (index + 0.5) / values.length]));
  const skip = Math.ceil(values.length / MOST_CATEGORIES);
  return {
    name,
    kind: 'category',
    place: (value) => (value == null ? null : (places.get(value) ?? null)),
    valueAt: (place) => {
      const index = Math.min(values.length - 1, Math.max(0, Math.floor(place * values.length)));
      return values[index] ?? '';
    },
    ticks: values.filter((_, index) => index % skip === 0).map((label) => ({ at: places.get(label)!, label })),
    step: 1 / Math.max(1, values.length),
  };
}

function numeric(name: string, kind: 'linear' | 'log', low: number, high: number, marks: number[]): Axis {
  const bend = kind === 'log' ? Math.log : (value: number) => value;
  const unbend = kind === 'log' ? Math.exp : (value: number) => value;
  const [from, to] = [bend(low), bend(high)];
  const at = (value: number) => (bend(value) - from) / (to - from);
  return {
    name,
    kind,
    place: (value) => {
      const size = value == null || !isNumeric(value) ? NaN : at(Number(value));
      return Number.isFinite(size) ? size : null;
    },
    valueAt: (place) => String(Number(unbend(from + place * (to - from)).toPrecision(6))),
    ticks: marks.map((mark) => ({ at: at(mark), label: number(mark) })),
    step: 0.05,
  };
}

function linear(name: string, low: number, high: number): Axis {
  return numeric(name, 'linear', low, high, linearMarks(low, high));
}

function log(name: string, low: number, high: number): Axis {
  return numeric(name, 'log', low, high, logMarks(low, high));
}

/** About five round numbers. */
export function linearMarks(low: number, high: number): number[] {
  const rough = (high - low) / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= rough) ?? rough;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** Powers of ten, of many only some, of few also what lies between. */
export function logMarks(low: number, high: number): number[] {
  const first = Math.floor(Math.log10(low) + 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const decades = Math.log10(high / low);
  const skip = Math.max(1, Math.ceil(decades / 8));
  const factors = decades < 1 ? [1, 2, 3, 5, 7] : decades < 3 ? [1, 2, 5] : [1];
  const marks: number[] = [];
  for (let power = first; power <= last; power += skip) {
    for (const factor of factors) marks.push(Number(`${factor}e${power}`));
  }
  return marks.filter((mark) => mark >= low * (1 - 1e-9) && mark <= high * (1 + 1e-9));
}
