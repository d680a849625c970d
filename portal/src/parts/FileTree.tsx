// A tree of files with their sizes, of which one is chosen. Only the rows in sight are drawn: a job may have
// very many files. By keyboard as trees are: up and down move, right and left unfold and fold, Enter chooses.
import { Box, Text } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from 'react';
import { type Leaf, treeRows, type TreeRow } from './fileTree';
import classes from './FileTree.module.css';
import { bytes } from './format';

const ROW = 28; // pixels

interface Props {
  files: Leaf[];
  chosen: string | null;
  onChoose(path: string): void;
  label: string;
  /** All folders are unfolded, as while one filters. */
  unfolded?: boolean;
  /** What stands beside a file's name, such as how it changed. */
  mark?(path: string): ReactNode;
  height?: number | string;
}

export function FileTree({ files, chosen, onChoose, label, unfolded = false, mark, height = 480 }: Props) {
  const [turned, setTurned] = useState<ReadonlyMap<string, boolean>>(new Map()); // folders that one has un- or folded
  const fewFiles = files.length <= 200;
  const rows = useMemo(() => {
    const isOpen = (path: string, depth: number) =>
      unfolded || (turned.get(path) ?? (fewFiles || depth === 0 || !!chosen?.startsWith(`${path}/`)));
    return treeRows(files, isOpen);
  }, [files, turned, unfolded, fewFiles, chosen]);
  const [active, setActive] = useState<string | null>(chosen);
  const at = Math.max(0, rows.findIndex((row) => row.path === (active ?? chosen)));
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  const list = useVirtualizer({
    count: rows.length, getScrollElement: () => frame.current, estimateSize: () => ROW, overscan: 12,
  });
  useEffect(() => list.scrollToIndex(at), [at, list]);

  const turn = (row: TreeRow) => setTurned(new Map(turned).set(row.path, !row.open));
  const use = (row: TreeRow) => {
    setActive(row.path);
    if (row.folder) turn(row);
    else onChoose(row.path);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[at];
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const move = (to: number) => setActive(rows[Math.min(Math.max(to, 0), rows.length - 1)]!.path);
    const parent = () => rows.findLastIndex((each, index) => index < at && each.depth < row.depth);
    const keys: Record<string, () => void> = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      PageDown: () => move(at + 15),
      PageUp: () => move(at - 15),
      ArrowRight: () => (row.folder && !row.open ? turn(row) : move(at + 1)),
      ArrowLeft: () => (row.folder && row.open && !unfolded ? turn(row) : parent() >= 0 && move(parent())),
      Enter: () => use(row),
      ' ': () => use(row),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  return (
    <div
      ref={frame}
      role="tree"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={rows[at] && `${id}-${at}`}
      onKeyDown={onKeyDown}
      className={classes.tree}
      style={{ maxHeight: height }}
    >
      <div style={{ height: list.getTotalSize(), position: 'relative' }}>
        {list.getVirtualItems().map(({ index, start }) => {
          const row = rows[index]!;
          return (
            <Box
              key={row.path}
              id={`${id}-${index}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-expanded={row.folder ? row.open : undefined}
              aria-selected={row.path === chosen}
              data-active={index === at || undefined}
              className={classes.row}
              style={{ transform: `translateY(${start}px)`, height: ROW, paddingLeft: 8 + 16 * row.depth }}
              onClick={() => use(row)}
              title={row.path}
            >
              <span className={classes.sign} aria-hidden>
                {row.folder ? (row.open ? '▾' : '▸') : ''}
              </span>
              <span className="one-line">{row.name}</span>
              {!row.folder && mark?.(row.path)}
              <Text span size="xs" className={classes.size}>
                {bytes(row.bytes)}
              </Text>
            </Box>
          );
        })}
      </div>
    </div>
  );
}
