// What differs between two texts, line by line; what is the same and far from that is folded.
import { Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { diffLines, type Edit, hunksOf } from './diff';
import { cut, type Line, Lines } from './Lines';
import classes from './Lines.module.css';

interface Props {
  before: string;
  after: string;
  label: string;
  height?: number | string;
}

export function Difference({ before, after, label, height }: Props) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set()); // the parts that were unfolded
  const hunks = useMemo(() => hunksOf(diffLines(before, after)), [before, after]);
  if (before === after) return <Text size="sm">There is no difference.</Text>;
  const lines = hunks.flatMap((hunk, index): Line[] => {
    if ('edits' in hunk) return hunk.edits.map(lineOf);
    if (open.has(index)) return hunk.hidden.map(lineOf);
    const unfold = (
      <button type="button" className={classes.unfold} onClick={() => setOpen(new Set([...open, index]))}>
        {hunk.hidden.length} lines that are the same
      </button>
    );
    return [{ numbers: [null, null], text: unfold, kind: 'gap' }];
  });
  return <Lines lines={lines} label={label} height={height} />;
}

function lineOf({ kind, before, after, text }: Edit): Line {
  return { numbers: [before, after], text: cut(text), kind: kind === 'same' ? undefined : kind };
}
