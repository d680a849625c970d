// A table of text, of which only the rows in sight are drawn.
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import classes from './TableView.module.css';

const ROW = 28; // pixels
const LONGEST = 200; // characters of a field

export function TableView({ rows, label }: { rows: string[][]; label: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const [head = [], ...body] = rows;
  const list = useVirtualizer({
    count: body.length, getScrollElement: () => frame.current, estimateSize: () => ROW, overscan: 15,
  });
  const seen = list.getVirtualItems();
  const before = seen[0]?.start ?? 0;
  const behind = list.getTotalSize() - (seen.at(-1)?.end ?? 0);
  const columns = rows.slice(0, 200).reduce((most, row) => Math.max(most, row.length), 0);
  const places = Array.from({ length: columns }, (_, index) => index);
  return (
    <div ref={frame} className={classes.frame} tabIndex={0} role="region" aria-label={label}>
      <table className={classes.table} aria-rowcount={rows.length}>
        <thead>
          <tr>
            <th scope="col">
              <span className={classes.dim}>#</span>
            </th>
            {places.map((place) => (
              <th key={place} scope="col" title={head[place]}>
                {shortened(head[place])}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden style={{ height: before }} />}
          {seen.map(({ index }) => (
            <tr key={index} style={{ height: ROW }} aria-rowindex={index + 2}>
              <td className={classes.dim}>{index + 1}</td>
              {places.map((place) => (
                <td key={place} title={body[index]![place]}>
                  {shortened(body[index]![place])}
                </td>
              ))}
            </tr>
          ))}
          {behind > 0 && <tr aria-hidden style={{ height: behind }} />}
        </tbody>
      </table>
    </div>
  );
}

function shortened(field = ''): string {
  return field.length > LONGEST ? `${field.slice(0, LONGEST)}…` : field;
}
