// The lines of a job's output that the page keeps: the newest ones, at most CAPACITY of them and of CHARACTERS
// together, in flat arrays that are written around. A row has a number that never changes, counted from the
// job's first line on, so that a link to it holds.
import type { FollowLine } from '../../api/follow';
import { carried, isPlain, plain } from './ansi';

export const CAPACITY = 200_000;
export const CHARACTERS = 64 * 1024 * 1024;
export const LONGEST = 8_192; // characters of a line; the file has all of it

export const SOURCES = ['state', 'stdout', 'stderr', 'mpirun'] as const;
export type Source = (typeof SOURCES)[number];

const AS_IS = 1; // nothing in the text needs to be looked at before it is shown
const CUT = 2;

/** A line that no newline has ended yet. */
interface Open {
  row: number;
  text: string;
  /** Whether it has been drawn anew, as progress bars are. */
  isBar: boolean;
}

export class LineStore {
  /** The rows kept are those from `first` to before `end`. */
  first = 0;
  end = 0;
  highestRank = -1;
  private readonly texts: string[];
  private readonly times: Float64Array;
  private readonly ranks: Int32Array;
  private readonly sources: Uint8Array;
  private readonly flags: Uint8Array;
  private readonly open = new Map<string, Open>();
  private readonly carry = new Map<string, string>();
  private changed = new Set<number>();
  private characters = 0;

  constructor(
    private readonly capacity = CAPACITY,
    private readonly mostCharacters = CHARACTERS,
  ) {
    this.texts = new Array<string>(capacity).fill('');
    this.times = new Float64Array(capacity);
    this.ranks = new Int32Array(capacity);
    this.sources = new Uint8Array(capacity);
    this.flags = new Uint8Array(capacity);
  }

  text = (row: number): string => this.texts[row % this.capacity]!;
  time = (row: number): number => this.times[row % this.capacity]!;
  rank = (row: number): number => this.ranks[row % this.capacity]!;
  source = (row: number): Source => SOURCES[this.sources[row % this.capacity]!]!;
  isCut = (row: number): boolean => (this.flags[row % this.capacity]! & CUT) !== 0;
  /** The text as it is seen, without colours. */
  plain = (row: number): string => {
    const at = row % this.capacity;
    return this.flags[at]! & AS_IS ? this.texts[at]! : plain(this.texts[at]!);
  };

  add(lines: readonly FollowLine[]): void {
    for (const line of lines) {
      if (line.type === 'state') {
        // Processes that start anew do not go on with lines of those before.
        if (line.state === 'Starting') this.forget();
        this.append(`${line.state}: ${line.reason}`, -1, 'state', line.time);
      } else if (line.type === 'output') {
        const source = line.stream;
        if (source === 'stdout' || source === 'stderr' || source === 'mpirun') {
          this.print(line.text, line.rank, source, line.time, line.partial === true);
        }
      }
    }
  }

  /** Returns the rows that were written anew since the last call. */
  takeChanged(): ReadonlySet<number> {
    const taken = this.changed;
    if (taken.size > 0) this.changed = new Set();
    return taken;
  }

  private forget(): void {
    this.open.clear();
    this.carry.clear();
  }

  private print(piece: string, rank: number, source: Source, time: string, partial: boolean): void {
    const key = source + rank;
    let open = this.open.get(key);
    if (open?.isBar && !partial && piece && open.row !== this.end - 1 && !(open.text + piece).includes('\r')) {
      open = undefined; // A message that breaks into a bar shows where it came, not where the bar stands.
    }
    const text = drawn(open ? open.text + piece : (this.carry.get(key) ?? '') + piece);
    const row = open && open.row >= this.first ? open.row : this.append('', rank, source, time);
    this.write(row, text);
    if (open?.row === row) this.changed.add(row);
    if (partial) {
      // What is beyond the longest line is not shown, and so not kept; a carriage return begins anew.
      const kept = text.length <= LONGEST + 1 ? text : text.slice(0, LONGEST + 1);
      const isBar = open?.isBar || piece.includes('\r');
      this.open.set(key, { row, isBar, text: text.endsWith('\r') && kept !== text ? kept + '\r' : kept });
      return;
    }
    this.open.delete(key);
    const colours = text.includes('\x1b[') ? carried(text) : '';
    if (colours) this.carry.set(key, colours);
    else this.carry.delete(key);
  }

  private append(text: string, rank: number, source: Source, time: string): number {
    if (this.end - this.first === this.capacity) this.drop();
    const row = this.end;
    const at = row % this.capacity;
    this.end += 1;
    this.texts[at] = '';
    this.times[at] = Date.parse(time);
    this.ranks[at] = rank;
    this.sources[at] = SOURCES.indexOf(source);
    if (rank > this.highestRank) this.highestRank = rank;
    this.write(row, text);
    return row;
  }

  private write(row: number, drawnText: string): void {
    const at = row % this.capacity;
    let text = drawnText.endsWith('\r') ? drawnText.slice(0, -1) : drawnText;
    const cut = text.length > LONGEST;
    if (cut) text = text.slice(0, LONGEST);
    this.characters += text.length - this.texts[at]!.length;
    this.texts[at] = text;
    this.flags[at] = (isPlain(text) ? AS_IS : 0) | (cut ? CUT : 0);
    while (this.characters > this.mostCharacters && this.first < row) this.drop();
  }

  private drop(): void {
    const at = this.first % this.capacity;
    this.characters -= this.texts[at]!.length;
    this.texts[at] = '';
    this.changed.delete(this.first); // else what nobody takes would grow
    this.first += 1;
  }
}

/** A line as it stands after its carriage returns: what was drawn last. One at the end waits for what follows. */
function drawn(text: string): string {
  if (!text.includes('\r')) return text;
  const shown = text.replace(/\r+$/, '');
  const last = shown.slice(shown.lastIndexOf('\r') + 1);
  return shown.length === text.length ? last : last + '\r';
}
