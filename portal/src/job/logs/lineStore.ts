// The lines of a job's output that the page keeps: a part of the log without gaps, at most CAPACITY of them and of
// CHARACTERS together, in flat arrays that are written around. It grows at its end and, by pages, at its begin; what
// is too much leaves at the other side. A row has a number here that never changes, and the cursor of its line, which
// names it for good.
import type { Schemas } from '../../api/client';
import type { FollowLine } from '../../api/follow';
import { carried, isPlain, plain } from './ansi';

type OutputLine = Schemas['OutputLine'];
type StateLine = Schemas['StateLine'];

export const CAPACITY = 200_000;
export const CHARACTERS = 64 * 1024 * 1024;
export const LONGEST = 8_192; // characters of a line; the file has all of it

export const SOURCES = ['state', 'stdout', 'stderr', 'mpirun'] as const;
export type Source = (typeof SOURCES)[number];

const AS_IS = 1; // nothing in the text needs to be looked at before it is shown
const CUT = 2;

const ORIGIN = 2 ** 31; // the number of the row that comes first; those that are read later and lie before it have less
const FULL = 0.9; // of what is kept at most; a page is less than the rest
const RESETS = /\x1b\[0*m/;

/** A line that no newline has ended yet. */
interface Open {
  row: number;
  text: string;
  /** Whether it has been drawn anew, as progress bars are. */
  isBar: boolean;
}

/** The first row of a rank's stream here: what is read later and lies before it may be its beginning. */
interface Head {
  row: number;
  /** Whether a carriage return has cleared what was there before. */
  isAnew: boolean;
}

export class LineStore {
  /** The rows kept are those from `first` to before `end`. */
  first = ORIGIN;
  end = ORIGIN;
  /** The cursor to ask with for what lies before them; null: nothing does. */
  before: string | null = null;
  /** The cursor behind which goes on what comes after them. */
  after = '';
  highestRank = -1;
  private zero: number | null = null; // the row of the job's first line, once that is known
  private readonly texts: string[];
  private readonly cursors: string[];
  private readonly times: Float64Array;
  private readonly ranks: Int32Array;
  private readonly sources: Uint8Array;
  private readonly flags: Uint8Array;
  private readonly open = new Map<string, Open>();
  private readonly carry = new Map<string, string>();
  private readonly heads = new Map<string, Head>();
  private isCutOff = false; // Processes have started since the first row: what comes does not go on with lines before.
  private changed = new Set<number>();
  private characters = 0;

  constructor(
    private readonly capacity = CAPACITY,
    private readonly mostCharacters = CHARACTERS,
  ) {
    this.texts = new Array<string>(capacity).fill('');
    this.cursors = new Array<string>(capacity).fill('');
    this.times = new Float64Array(capacity);
    this.ranks = new Int32Array(capacity);
    this.sources = new Uint8Array(capacity);
    this.flags = new Uint8Array(capacity);
  }

  get rows(): number {
    return this.end - this.first;
  }
  /** Whether one page more would have rows leave. */
  get isFull(): boolean {
    return this.rows >= FULL * this.capacity || this.characters >= FULL * this.mostCharacters;
  }
  /** The number of the line, counted from the job's first; null as long as that is not known. */
  number = (row: number): number | null => (this.zero === null ? null : row - this.zero + 1);
  /** The row of the line with that number, or null. */
  numbered = (line: number): number | null => this.kept(this.zero === null ? null : this.zero + line - 1);
  /** The row with that cursor, or null. */
  rowAt = (cursor: string): number | null => {
    for (let row = this.end - 1; row >= this.first; row -= 1) if (this.cursor(row) === cursor) return row;
    return null;
  };
  kept = (row: number | null): number | null =>
    row !== null && row >= this.first && row < this.end ? row : null;
  cursor = (row: number): string => this.cursors[row % this.capacity]!;
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

  /** Says that what is kept, or will be, begins behind the line with cursor `before`; null: with the first of all. */
  beginsAfter(before: string | null): void {
    this.before = before;
    if (before === null) this.zero = this.first;
  }

  /** Takes the lines that come after those that are kept. */
  add(lines: readonly FollowLine[]): void {
    for (const line of lines) {
      if (line.type === 'alive') continue;
      this.after = line.cursor;
      if (line.type === 'state') {
        // Processes that start anew do not go on with lines of those before.
        if (line.state === 'Starting') this.cutOff();
        this.append(`${line.state}: ${line.reason}`, -1, 'state', line);
      } else {
        const source = line.stream;
        if (source === 'stdout' || source === 'stderr' || source === 'mpirun') this.print(line, source);
      }
    }
  }

  /** Takes the lines that come before those that are kept, and what then comes before them (as beginsAfter). */
  prepend(lines: readonly FollowLine[], before: string | null): void {
    const page = new LineStore(lines.length + 1, Infinity);
    page.add(lines);
    const joined = this.join(page);
    const places = new Map<number, number>(); // of the page's rows here
    for (let row = page.end - 1; row >= page.first; row -= 1) {
      if (joined.has(row)) continue;
      if (this.rows === this.capacity) this.dropLast();
      this.first -= 1;
      const at = this.first % this.capacity;
      this.cursors[at] = page.cursor(row);
      this.times[at] = page.time(row);
      this.ranks[at] = page.rank(row);
      this.sources[at] = SOURCES.indexOf(page.source(row));
      this.texts[at] = '';
      this.put(this.first, page.text(row), page.isCut(row));
      places.set(row, this.first);
      while (this.characters > this.mostCharacters && this.first < this.end - 1) this.dropLast();
    }
    for (const open of page.open.values()) open.row = places.get(open.row) ?? open.row;
    this.takeHeads(page, places);
    this.highestRank = Math.max(this.highestRank, page.highestRank);
    this.beginsAfter(before);
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

  private cutOff(): void {
    this.forget();
    this.isCutOff = true;
  }

  /**
   * Has lines that a page begins and this goes on with be one, in the row that is here, and the page's colours go on.
   * Returns the rows of the page that are here then.
   */
  private join(page: LineStore): ReadonlySet<number> {
    const joined = new Set<number>();
    for (const key of new Set([...page.open.keys(), ...page.carry.keys()])) {
      const open = page.open.get(key);
      const head = this.heads.get(key);
      const colours = open ? carried(open.text) : page.carry.get(key)!;
      if (head && colours) this.colour(key, head.row, colours);
      if (head && open) {
        joined.add(open.row);
        const isAnew = head.isAnew || open.text.endsWith('\r');
        this.putBefore(key, head.row, isAnew ? colours : open.text);
      } else if (head) this.putBefore(key, head.row, colours);
      if (!head && !this.isCutOff && open) this.open.set(key, open);
      if (!head && !this.isCutOff && !open) this.carry.set(key, colours);
    }
    return joined;
  }

  private putBefore(key: string, row: number, text: string): void {
    if (!text) return;
    this.put(row, text + this.text(row), this.isCut(row));
    this.changed.add(row);
    const open = this.open.get(key);
    if (open?.row === row) open.text = text + open.text;
  }

  /** Has the lines of a rank's stream behind `row` go on with `colours`, until they are reset. */
  private colour(key: string, row: number, colours: string): void {
    for (let at = row; ; at += 1) {
      if (at === this.end) break;
      const source = this.source(at);
      if (source === 'state' && this.text(at).startsWith('Starting')) return;
      if (source + this.rank(at) !== key) continue;
      if (at > row) this.putBefore(key, at, colours);
      if (RESETS.test(this.text(at))) return;
    }
    this.carry.set(key, colours + (this.carry.get(key) ?? ''));
  }

  private takeHeads(page: LineStore, places: ReadonlyMap<number, number>): void {
    if (page.isCutOff) this.heads.clear();
    this.isCutOff ||= page.isCutOff;
    for (const [key, { row, isAnew }] of page.heads) {
      const place = places.get(row);
      const here = this.heads.get(key);
      if (place !== undefined) this.heads.set(key, { row: place, isAnew });
      else if (here) here.isAnew ||= isAnew; // The page's is a part of it now.
    }
    for (const [key, { row }] of this.heads) if (this.kept(row) === null) this.heads.delete(key);
  }

  private print(line: OutputLine, source: Source): void {
    const { text: piece, rank } = line;
    const partial = line.partial === true;
    const key = source + rank;
    let open = this.open.get(key);
    if (open?.isBar && !partial && piece && open.row !== this.end - 1 && !(open.text + piece).includes('\r')) {
      open = undefined; // A message that breaks into a bar shows where it came, not where the bar stands.
    }
    const text = drawn(open ? open.text + piece : (this.carry.get(key) ?? '') + piece);
    const row = open && open.row >= this.first ? open.row : this.append('', rank, source, line);
    this.noteHead(key, row, piece);
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

  private noteHead(key: string, row: number, piece: string): void {
    const head = this.heads.get(key);
    if (!head && this.isCutOff) return;
    const isAnew = piece.replace(/\r+$/, '').includes('\r');
    if (!head) this.heads.set(key, { row, isAnew });
    else if (head.row === row && isAnew) head.isAnew = true;
  }

  private append(text: string, rank: number, source: Source, { time, cursor }: OutputLine | StateLine): number {
    if (this.rows === this.capacity) this.drop();
    const row = this.end;
    const at = row % this.capacity;
    this.end += 1;
    this.texts[at] = '';
    this.cursors[at] = cursor;
    this.times[at] = Date.parse(time);
    this.ranks[at] = rank;
    this.sources[at] = SOURCES.indexOf(source);
    if (rank > this.highestRank) this.highestRank = rank;
    this.write(row, text);
    return row;
  }

  private write(row: number, drawnText: string): void {
    this.put(row, drawnText.endsWith('\r') ? drawnText.slice(0, -1) : drawnText, false);
    while (this.characters > this.mostCharacters && this.first < row) this.drop();
  }

  private put(row: number, whole: string, isCut: boolean): void {
    const at = row % this.capacity;
    const cut = isCut || whole.length > LONGEST;
    const text = whole.length > LONGEST ? whole.slice(0, LONGEST) : whole;
    this.characters += text.length - this.texts[at]!.length;
    this.texts[at] = text;
    this.flags[at] = (isPlain(text) ? AS_IS : 0) | (cut ? CUT : 0);
  }

  private drop(): void {
    this.before = this.cursor(this.first);
    this.isCutOff = true; // What is left of that line lies behind others.
    this.heads.clear();
    this.clear(this.first);
    this.first += 1;
  }

  /** What comes after the rows that are left is read again, and so lines that are not whole begin anew. */
  private dropLast(): void {
    this.forget();
    this.end -= 1;
    this.clear(this.end);
    this.after = this.cursor(this.end - 1);
  }

  private clear(row: number): void {
    const at = row % this.capacity;
    this.characters -= this.texts[at]!.length;
    this.texts[at] = '';
    this.cursors[at] = '';
    this.changed.delete(row); // else what nobody takes would grow
  }
}

/** A line as it stands after its carriage returns: what was drawn last. One at the end waits for what follows. */
function drawn(text: string): string {
  if (!text.includes('\r')) return text;
  const shown = text.replace(/\r+$/, '');
  const last = shown.slice(shown.lastIndexOf('\r') + 1);
  return shown.length === text.length ? last : last + '\r';
}
