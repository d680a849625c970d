// How times, durations, bytes and numbers are written.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** "1.5 GiB"; "–" where it is not known. */
export function bytes(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return '–';
  let unit = 0;
  let rest = value;
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? rest : rest.toFixed(rest < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** "47 s", "3 min 5 s", "2 h 10 min", "4 d 3 h". */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

/** The seconds between two times of the service; up to now where there is no end. */
export function secondsBetween(from: string | null, to: string | null, now = Date.now()): number | null {
  if (!from) return null;
  return ((to ? Date.parse(to) : now) - Date.parse(from)) / 1000;
}

/** "5 min ago". */
export function ago(time: string, now = Date.now()): string {
  const seconds = (now - Date.parse(time)) / 1000;
  return seconds < 5 ? 'now' : `${duration(seconds).split(' ').slice(0, 2).join(' ')} ago`;
}

/** "2026-11-29 14:03:07", in the time zone of who looks. */
export function moment(time: string): string {
  const date = new Date(time);
  const two = (part: number) => String(part).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

interface Start {
  expected_start: string | null;
  expected_start_is: 'latest' | 'estimate' | 'plan' | null;
}

/** "2026-11-29 14:03:07 at the latest", as the service says what the time is; '' where none is known. */
export function startText({ expected_start: at, expected_start_is: is }: Start): string {
  if (!at) return '';
  if (is === 'latest') return `${moment(at)} at the latest`;
  return is === 'plan' ? `${moment(at)}, as its cluster has planned` : `about ${moment(at)}, an estimate`;
}

/** Four digits that count: "0.02314", "1283", "1.2e-7". */
export function number(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return '–';
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}
