// One row of output.
import { memo, type CSSProperties, type MouseEvent } from 'react';
import { moment } from '../../parts/format';
import { type Piece, pieces } from './ansi';
import type { Source } from './lineStore';
import { draw, hueOf } from './look';

export interface RowLooks {
  times: boolean;
  wrap: boolean;
  rankColors: boolean;
}

interface Props {
  row: number;
  /** Counted from the log's first line; null: that is not known. */
  number: number | null;
  /** What names the line in addresses. */
  cursor: string;
  text: string;
  rank: number;
  source: Source;
  time: number;
  cut: boolean;
  looks: RowLooks;
  search: RegExp | null;
  /** Whether the address names it. */
  named: boolean;
  onName(row: number): void;
}

export const LogRow = memo(function LogRow(props: Props) {
  const { row, number: counted, cursor, text, rank, source, time, cut, looks, search, named, onName } = props;
  const name = (event: MouseEvent) => {
    event.preventDefault();
    onName(row);
  };
  const clock = looks.times && (
    <time className="log-time" title={moment(new Date(time).toISOString())}>
      {clockOf(time)}
    </time>
  );
  const number = (
    <a
      className="log-number"
      href={`?line=${cursor}`}
      tabIndex={-1}
      title={counted === null ? 'Link to this line' : `Link to line ${counted}`}
      onClick={name}
    >
      {counted ?? '·'}
    </a>
  );
  if (source === 'state') {
    return (
      <div className={named ? 'log-row log-state log-named' : 'log-row log-state'}>
        {number}
        {clock}
        <span className="log-text">
          <Pieces text={text} search={search} />
        </span>
      </div>
    );
  }
  const hue = looks.rankColors ? ({ '--hue': hueOf(rank) } as CSSProperties) : undefined;
  return (
    <div className={named ? 'log-row log-named' : 'log-row'}>
      {number}
      {clock}
      <span className={hue ? 'log-rank log-hue' : 'log-rank'} style={hue} title={`Rank ${rank}, ${source}`}>
        {rank}
        {source === 'stdout' ? '' : source === 'stderr' ? ' err' : ' mpi'}
      </span>
      <span className="log-text">
        <Pieces text={text} search={search} />
        {cut && <span className="log-dim"> … cut here; the file has the whole line</span>}
      </span>
    </div>
  );
});

function Pieces({ text, search }: { text: string; search: RegExp | null }) {
  const all = pieces(text);
  return (search ? marked(all, search) : all).map((piece, at) => {
    const { className, style } = draw(piece.look);
    if ('mark' in piece) {
      return (
        <mark key={at} className={className}>
          {piece.text}
        </mark>
      );
    }
    if (!className && !style) return piece.text;
    return (
      <span key={at} className={className} style={style}>
        {piece.text}
      </span>
    );
  });
}

type Marked = Piece | (Piece & { mark: true });

/** The pieces, cut so that what is found is in pieces of its own. */
function marked(all: Piece[], search: RegExp): Marked[] {
  const whole = all.map((piece) => piece.text).join('');
  const found = [...whole.matchAll(search)].map((match) => [match.index, match.index + match[0].length] as const);
  if (found.length === 0) return all;
  const cut: Marked[] = [];
  let start = 0;
  for (const piece of all) {
    let at = 0;
    for (const [from, to] of found) {
      const low = Math.max(from - start, at);
      const high = Math.min(to - start, piece.text.length);
      if (low >= high) continue;
      if (low > at) cut.push({ ...piece, text: piece.text.slice(at, low) });
      cut.push({ ...piece, text: piece.text.slice(low, high), mark: true });
      at = high;
    }
    if (at < piece.text.length) cut.push({ ...piece, text: piece.text.slice(at) });
    start += piece.text.length;
  }
  return cut;
}

function clockOf(time: number): string {
  const date = new Date(time);
  const two = (part: number, digits = 2) => String(part).padStart(digits, '0');
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${clock}.${two(date.getMilliseconds(), 3)}`;
}
