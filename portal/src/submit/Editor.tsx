// The text of a job file, to be edited, with the numbers of its lines; those with faults are marked.
import { Text } from '@mantine/core';
import { type Ref, useImperativeHandle, useRef } from 'react';
import classes from './Editor.module.css';
import type { Fault } from './yaml';

const LINE = 20; // pixels

export interface EditorHandle {
  /** Selects a line, from 1, and brings it into sight. */
  goTo(line: number): void;
}

interface Props {
  text: string;
  onChange(text: string): void;
  faults: Fault[];
  handle: Ref<EditorHandle>;
}

export function Editor({ text, onChange, faults, handle }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLDivElement>(null);
  useImperativeHandle(handle, () => ({
    goTo(line) {
      const lines = area.current!.value.split('\n');
      const from = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
      area.current!.focus();
      area.current!.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
      area.current!.scrollTop = Math.max(0, (line - 6) * LINE);
    },
  }));
  const bad = new Set(faults.map((fault) => fault.line));
  const count = text.split('\n').length;
  return (
    <div>
      <Text component="label" htmlFor="job-file" size="sm" fw={500}>
        Job file
      </Text>
      <div className={classes.editor}>
        <div ref={numbers} className={classes.numbers} aria-hidden>
          {Array.from({ length: count }, (_, index) => (
            <div key={index} data-bad={bad.has(index + 1) || undefined}>
              {index + 1}
            </div>
          ))}
        </div>
        <textarea
          ref={area}
          id="job-file"
          className={classes.area}
          value={text}
          rows={Math.min(Math.max(count + 1, 14), 28)}
          spellCheck={false}
          autoCapitalize="off"
          autoCorrect="off"
          wrap="off"
          placeholder={'type: command\ncommand: python3 train.py\ncompute: local'}
          aria-invalid={faults.length > 0}
          aria-describedby={faults.length > 0 ? 'job-file-faults' : undefined}
          onChange={(event) => onChange(event.currentTarget.value)}
          onScroll={(event) => {
            if (numbers.current) numbers.current.scrollTop = event.currentTarget.scrollTop;
          }}
        />
      </div>
    </div>
  );
}
