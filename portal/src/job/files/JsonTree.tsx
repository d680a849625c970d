// A JSON value whose parts fold; what lies deep is folded at first, and long lists come piece by piece.
import { Button } from '@mantine/core';
import { useState } from 'react';
import classes from './JsonTree.module.css';

const OPEN_DEPTH = 2;
const PIECE = 100;
const LONGEST = 2_000; // characters of a text

export function JsonTree({ value }: { value: unknown }) {
  return (
    <div className={classes.json} tabIndex={0} role="region" aria-label="JSON">
      <Value value={value} depth={0} />
    </div>
  );
}

function Value({ value, depth, name }: { value: unknown; depth: number; name?: string }) {
  const label = name !== undefined && <span className={classes.key}>{name}: </span>;
  if (typeof value !== 'object' || value === null) {
    const text = JSON.stringify(value);
    return (
      <div className={classes.leaf}>
        {label}
        <span className={typeof value === 'string' ? classes.string : classes.plain}>
          {text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}
        </span>
      </div>
    );
  }
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const [open, close] = list ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) {
    return (
      <div className={classes.leaf}>
        {label}
        {open}
        {close}
      </div>
    );
  }
  return <Folding label={label} entries={entries} list={list} depth={depth} />;
}

interface FoldingProps {
  label: React.ReactNode;
  entries: [string, unknown][];
  list: boolean;
  depth: number;
}

function Folding({ label, entries, list, depth }: FoldingProps) {
  const [open, setOpen] = useState(depth < OPEN_DEPTH);
  const [shown, setShown] = useState(PIECE);
  const count = `${entries.length} ${list ? 'item' : 'key'}${entries.length === 1 ? '' : 's'}`;
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span className={classes.count}>{list ? `[${count}]` : `{${count}}`}</span>
      </summary>
      {open && (
        <div className={classes.inner}>
          {entries.slice(0, shown).map(([key, value]) => (
            <Value key={key} name={key} value={value} depth={depth + 1} />
          ))}
          {shown < entries.length && (
            <Button size="compact-xs" variant="default" onClick={() => setShown(shown + 10 * PIECE)}>
              {entries.length - shown} more
            </Button>
          )}
        </div>
      )}
    </details>
  );
}
