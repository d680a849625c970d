// The text of a job file, to be edited, with the numbers of its lines; faults are marked where they are, with what is
// wrong behind the line. Who does not see that has the list of faults, which describes the field.
import { Text } from '@mantine/core';
import { type Ref, useImperativeHandle, useRef } from 'react';
import classes from './Editor.module.css';
import { type Fault, markOf } from './yaml';

const LINE = 20; // pixels

export interface EditorHandle {
  /** Selects what a fault is about and brings it into sight. */
  goTo(fault: Fault): void;
}

interface Props {
  text: string;
  onChange(text: string): void;
  faults: Fault[];
  handle: Ref<EditorHandle>;
}

/** The element that lists the faults; it describes the field. */
export const FAULTS = 'job-file-faults';

export function Editor({ text, onChange, faults, handle }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLDivElement>(null);
  const marks = useRef<HTMLDivElement>(null);
  useImperativeHandle(handle, () => ({
    goTo({ line, text: fault }) {
      const lines = area.current!.value.split('\n');
      const at = (line ?? 1) - 1;
      const begin = lines.slice(0, at).reduce((sum, each) => sum + each.length + 1, 0);
      const { from, to } = markOf(lines[at] ?? '', fault);
      area.current!.focus();
      area.current!.setSelectionRange(begin + from, begin + to);
      area.current!.scrollTop = Math.max(0, (at - 5) * LINE);
    },
  }));
  const lines = text.split('\n');
  const bad = new Map<number, Fault[]>();
  for (const fault of faults) {
    if (fault.line !== null) bad.set(fault.line, [...(bad.get(fault.line) ?? []), fault]);
  }
  const count = lines.length;
  return (
    <div>
      <Text component="label" htmlFor="job-file" size="sm" fw={500}>
        Job file
      </Text>
      <div className={classes.editor}>
        <div ref={numbers} className={classes.numbers} aria-hidden>
          {Array.from({ length: count }, (_, index) => (
            <div
              key={index}
              data-bad={bad.has(index + 1) || undefined}
              title={bad.get(index + 1)?.map((fault) => fault.text).join('\n')}
            >
              {index + 1}
            </div>
          ))}
        </div>
        <div className={classes.text}>
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
            aria-describedby={faults.length > 0 ? FAULTS : undefined}
            onChange={(event) => onChange(event.currentTarget.value)}
            onScroll={({ currentTarget: { scrollLeft, scrollTop } }) => {
              numbers.current!.scrollTop = scrollTop;
              marks.current!.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
            }}
          />
          <div className={classes.over} aria-hidden>
            <div ref={marks} className={classes.marks}>
              {[...bad].map(([line, here]) => (
                <Marks key={line} line={line} text={lines[line - 1] ?? ''} faults={here} />
              ))}
            </div>
          </div>
        </div>
      </div>
    </div>
  );
}

/** The faults of one line: each underlined, and behind the line what they are. The text's font has one width. */
function Marks({ line, text, faults }: { line: number; text: string; faults: Fault[] }) {
  return (
    <div className={classes.line} style={{ top: (line - 1) * LINE }}>
      {faults.map((fault, index) => {
        const { from, to } = markOf(text, fault.text);
        return <div key={index} className={classes.mark} style={{ left: `${from}ch`, width: `${to - from}ch` }} />;
      })}
      <div className={classes.what} style={{ left: `${text.length + 2}ch` }}>
        {faults.map((fault) => fault.text).join('; ')}
      </div>
    </div>
  );
}
