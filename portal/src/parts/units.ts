// What the values of a chart are: how they are written, and where its axis has its ticks.
import { bytes, duration, moment, number } from './format';

export type Unit = 'number' | 'bytes' | 'bytes/s' | 'cores' | 'share' | 'watts' | 'celsius';
/** What x is: a step, a time (seconds since 1970), seconds since a job began. */
export type XUnit = 'step' | 'time' | 'elapsed';

/** Writes a value with its unit: "1.5 GiB/s", "87 %". */
export function written(unit: Unit, value: number | null): string {
  if (value === null || !Number.isFinite(value)) return '–';
  if (unit === 'bytes') return bytes(Math.round(value));
  if (unit === 'bytes/s') return `${bytes(Math.round(value))}/s`;
  if (unit === 'cores') return `${number(value)} ${value === 1 ? 'core' : 'cores'}`;
  if (unit === 'share') return `${number(value * 100)} %`;
  if (unit === 'watts') return `${number(value)} W`;
  if (unit === 'celsius') return `${number(value)} °C`;
  return number(value);
}

export function writtenX(unit: XUnit, value: number): string {
  if (unit === 'time') return moment(new Date(value * 1000).toISOString());
  return unit === 'elapsed' ? duration(value) : `step ${number(value)}`;
}

/** Writes a tick, with as many digits as tell it from the next one, which is `step` away. */
export function tick(unit: Unit, value: number, step: number): string {
  if (unit === 'bytes' || unit === 'bytes/s') return byteTick(value, step) + (unit === 'bytes' ? '' : '/s');
  if (unit === 'share') return `${plainTick(value * 100, step * 100)} %`;
  return plainTick(value, step) + { number: '', cores: '', watts: ' W', celsius: ' °C' }[unit];
}

function plainTick(value: number, step: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) {
    const digits = Math.max(0, Math.min(4, Math.floor(Math.log10(size)) - Math.floor(Math.log10(step))));
    return value.toExponential(digits);
  }
  return value.toFixed(Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9))));
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

function byteTick(value: number, step: number): string {
  const power = Math.min(5, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  const digits = Math.max(0, Math.min(2, Math.ceil(power * 10 - Math.log2(step)) > 0 ? 1 : 0));
  const size = value / 1024 ** power;
  return `${Number.isInteger(size) ? size : size.toFixed(digits)} ${BYTE_UNITS[power]}`;
}

/** "90 s", "1:30" minutes, "2 h": short enough for an axis. */
export function elapsedTick(value: number): string {
  const two = (part: number) => String(part).padStart(2, '0');
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor((whole % 3600) / 60))} h`;
}

const powers = (base: number, from: number, to: number, factors: number[]) =>
  Array.from({ length: to - from }, (_, i) => factors.map((factor) => factor * base ** (from + i))).flat();

/** The distances that ticks of an axis may have. */
export function tickSteps(unit: Unit): number[] {
  if (unit === 'bytes' || unit === 'bytes/s') return powers(2, 0, 56, [1]);
  return powers(10, -15, 16, [1, 2, 5]).map((step) => Number(step.toPrecision(12)));
}

export const STEP_STEPS = powers(10, 0, 16, [1, 2, 5]);
export const ELAPSED_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000,
  864_000, 2_592_000,
];
