// The rows of output, of which only those in sight are drawn. It stays at the end until one scrolls up, and holds
// what one reads in place while older rows leave and newer ones come.
import { Button } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from 'react';
import type { LineStore } from './lineStore';
import { LogRow, type RowLooks } from './LogRow';
import { placeOf } from './lineView';

const LINE_HEIGHT = 20; // pixels, as logs.css has it
const AT_END = 24;
const NEAR = 1_000; // pixels from what is not loaded, where it is to be
const KEYS = 2 ** 18; // more than are kept: a key comes back only once its row is gone, so that sizes do not pile up

interface Props {
  store: LineStore;
  rows: readonly number[];
  looks: RowLooks;
  search: RegExp | null;
  /** The row that the address names, or null; `jump` changes when it is to be brought into sight. */
  named: number | null;
  jump: number;
  onName(row: number): void;
  /** Whether the newest line is loaded; `onEnd` has it loaded. */
  isAtEnd: boolean;
  onEnd(): void;
  /** Load a page before or behind what is loaded; null: not now. */
  onOlder: (() => void) | null;
  onNewer: (() => void) | null;
}

export function LogList(props: Props) {
  const { store, rows, looks, search, named, jump, onName, isAtEnd } = props;
  const pane = useRef<HTMLDivElement>(null);
  const [sticks, setSticks] = useState(named === null);
  const [seen, setSeen] = useState(0); // rows that had come when one scrolled up
  const top = useRef(0);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => pane.current,
    estimateSize: () => LINE_HEIGHT,
    getItemKey: useCallback((index: number) => rows[index]! % KEYS, [rows]),
    overscan: 8,
    anchorTo: sticks ? 'start' : 'end', // Who reads higher up keeps in place what is read.
    useFlushSync: false,
  });

  // The pane takes what the window has left below where it begins.
  const fill = () => {
    const element = pane.current!;
    const above = `${Math.round(element.getBoundingClientRect().top + window.scrollY)}px`;
    if (element.style.getPropertyValue('--log-above') !== above) element.style.setProperty('--log-above', above);
  };
  useLayoutEffect(fill);

  const stickToEnd = () => {
    top.current = 0;
    setSticks(true);
  };
  const toEnd = () => {
    stickToEnd();
    if (!isAtEnd) props.onEnd();
  };

  // What is not loaded comes before one sees that it lacks. Rows that do not fill the pane are in sight at both ends.
  const loadMore = (scrolls: boolean) => {
    const { scrollTop, scrollHeight, clientHeight } = pane.current!;
    const isShort = scrollHeight <= clientHeight + NEAR;
    const wants = isShort ? !store.isFull : !sticks && (scrolls || !store.isFull);
    if (scrollTop < NEAR && wants) props.onOlder?.();
    else if (!isAtEnd && scrollHeight - scrollTop - clientHeight < NEAR) props.onNewer?.();
  };
  useEffect(() => loadMore(false));

  // Other rows: what one has looked at stays in sight, where it is among them.
  useLayoutEffect(() => {
    list.measure();
    if (sticks) stickToEnd();
    else if (named !== null) list.scrollToIndex(Math.min(placeOf(rows, named), rows.length - 1), { align: 'center' });
  }, [rows, looks.wrap]);

  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = pane.current!;
    const up = scrollTop < top.current;
    top.current = scrollTop;
    if (isAtEnd && scrollHeight - scrollTop - clientHeight < AT_END) setSticks(true);
    else if (up && sticks) {
      setSticks(false);
      setSeen(store.end);
    }
    loadMore(true);
  };

  // Stays at the end, as rows come or turn out higher than they were taken for. One who scrolls up is left alone:
  // the pane is above where it was last seen. The event has the list draw the rows there before this frame is
  // painted, which the browser's own event would do a frame later.
  const total = list.getTotalSize();
  const last = rows.at(-1);
  const stick = useEffectEvent(() => {
    const element = pane.current!;
    if (!sticks || element.scrollTop < top.current) return;
    element.scrollTop = element.scrollHeight;
    element.dispatchEvent(new Event('scroll'));
  });
  useLayoutEffect(() => stick(), [sticks, total, rows.length, last]);

  // Brings the named row into sight, once it is there; after the above, which would go to the end.
  const due = useRef(named === null ? jump : -1);
  useLayoutEffect(() => {
    if (due.current === jump || named === null) return;
    due.current = jump;
    setSticks(false);
    setSeen(store.end);
    const place = placeOf(rows, named);
    if (place < rows.length) list.scrollToIndex(place, { align: 'center' });
  });

  // The pane shrinks when something comes above it, such as why the job failed.
  const onSize = useEffectEvent(() => {
    fill();
    stick();
  });
  useEffect(() => {
    const sizes = new ResizeObserver(() => onSize());
    sizes.observe(pane.current!);
    sizes.observe(document.body);
    return () => sizes.disconnect();
  }, []);

  const fresh = sticks || !isAtEnd ? 0 : rows.length - placeOf(rows, seen);
  return (
    <div className="log-frame">
      <div
        ref={pane}
        className={looks.wrap ? 'log-pane log-wrap' : 'log-pane'}
        role="region"
        aria-label="Output"
        tabIndex={0}
        onScroll={onScroll}
      >
        <div className="log-rows" style={{ height: total }}>
          {list.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            return (
              <div
                key={item.key}
                data-index={item.index}
                ref={looks.wrap ? list.measureElement : undefined}
                className="log-place"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <LogRow
                  row={row}
                  number={store.number(row)}
                  cursor={store.cursor(row)}
                  text={store.text(row)}
                  rank={store.rank(row)}
                  source={store.source(row)}
                  time={store.time(row)}
                  cut={store.isCut(row)}
                  looks={looks}
                  search={search}
                  named={row === named}
                  onName={onName}
                />
              </div>
            );
          })}
        </div>
      </div>
      {(!sticks || !isAtEnd) && rows.length > 0 && (
        <Button className="log-to-end" size="xs" variant="filled" onClick={toEnd}>
          {fresh > 0 ? `↓ ${fresh.toLocaleString('en')} new ${fresh === 1 ? 'line' : 'lines'}` : '↓ To the end'}
        </Button>
      )}
    </div>
  );
}
