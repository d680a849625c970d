// Lines of a text with their numbers, of which only those in sight are drawn. Text is always shown as text.
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useRef } from 'react';
import classes from './Lines.module.css';

const ROW = 20; // pixels

export interface Line {
  numbers: (number | null)[]; // in each text that is shown: one, or those of a comparison
  text: ReactNode;
  kind?: 'added' | 'removed' | 'gap' | 'marked';
}

interface Props {
  lines: Line[];
  label: string;
  height?: number | string;
  /** The line, from 0, that comes into sight. */
  show?: number;
}

const SIGNS = { added: '+', removed: '−', gap: '', marked: '' };

export function Lines({ lines, label, height = '65vh', show }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: lines.length, getScrollElement: () => frame.current, estimateSize: () => ROW, overscan: 20,
  });
  useEffect(() => {
    if (show !== undefined) list.scrollToIndex(show, { align: 'center' });
  }, [show, list]);
  const seen = list.getVirtualItems();
  const digits = String(lines.reduce((most, line) => Math.max(most, ...line.numbers.map(Number)), 0)).length;
  return (
    <div
      ref={frame}
      className={classes.frame}
      style={{ maxHeight: height }}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <div style={{ height: list.getTotalSize(), position: 'relative' }}>
        <div className={classes.seen} style={{ transform: `translateY(${seen[0]?.start ?? 0}px)` }}>
          {seen.map(({ index }) => {
            const { numbers, text, kind } = lines[index]!;
            return (
              <div key={index} className={classes.line} data-kind={kind} style={{ height: ROW }}>
                {numbers.map((number, side) => (
                  <span key={side} className={classes.number} style={{ width: `${digits + 1}ch` }}>
                    {number}
                  </span>
                ))}
                {numbers.length > 1 && <span className={classes.sign}>{kind ? SIGNS[kind] : ''}</span>}
                <span className={classes.text}>{text}</span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

const LONGEST = 5_000; // characters of a line that are drawn

/** The lines of a text, numbered from 1. */
export function linesOf(text: string): Line[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line, index) => ({ numbers: [index + 1], text: cut(line.replace(/\r$/, '')) }));
}

export function cut(line: string): string {
  return line.length > LONGEST ? `${line.slice(0, LONGEST)} … (${line.length - LONGEST} more characters)` : line;
}
