// Where a job file comes from: chosen or dropped, alone or with the folder of its code.
import { Button, FileButton, Group, Text } from '@mantine/core';
import { type ReactNode, useEffect, useEffectEvent, useRef, useState } from 'react';
import classes from './Editor.module.css';
import { entriesOf, fileOf, type Folder, folderOfDialog, folderOfEntries } from './folder';

interface Props {
  onFile(file: File): void;
  onFolder(folder: Folder): void;
  onExample(): void;
  onError(error: Error): void;
  children?: ReactNode;
}

export function Source({ onFile, onFolder, onExample, onError, children }: Props) {
  const [over, setOver] = useState(false);
  const [reads, setReads] = useState(false);
  const folderInput = useRef<HTMLInputElement>(null);
  const take = useEffectEvent(async (data: DataTransfer) => {
    const entries = entriesOf(data.items);
    const file = data.files[0];
    if (entries.length === 0) return file && onFile(file);
    setReads(true);
    try {
      const single = entries.length === 1 && entries[0]!.isFile ? (entries[0] as FileSystemFileEntry) : undefined;
      if (single) onFile(await fileOf(single));
      else onFolder(await folderOfEntries(entries));
    } catch (error) {
      onError(error as Error);
    } finally {
      setReads(false);
    }
  });
  // Anywhere on the page: a browser opens what is dropped beside the mark, and the page with its text is gone.
  useEffect(() => {
    const files = (event: DragEvent) => event.dataTransfer?.types.includes('Files');
    const onOver = (event: DragEvent) => {
      if (!files(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const onLeave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const onDrop = (event: DragEvent) => {
      if (!files(event)) return;
      event.preventDefault();
      setOver(false);
      void take(event.dataTransfer!);
    };
    window.addEventListener('dragover', onOver);
    window.addEventListener('dragleave', onLeave);
    window.addEventListener('drop', onDrop);
    return () => {
      window.removeEventListener('dragover', onOver);
      window.removeEventListener('dragleave', onLeave);
      window.removeEventListener('drop', onDrop);
    };
  }, []);
  return (
    <div className={classes.drop} data-over={over || undefined}>
      <Text size="sm" mb="xs" role="status">
        {reads ? 'Reading the folder …' : 'Drop a job file (YAML) here, or the folder with it and its code.'}
      </Text>
      <Group gap="xs">
        <FileButton onChange={(file) => file && onFile(file)} accept=".yml,.yaml,.txt,text/yaml,text/plain">
          {(props) => (
            <Button {...props} size="compact-sm" variant="default">
              Choose a file
            </Button>
          )}
        </FileButton>
        <input
          ref={folderInput}
          type="file"
          className={classes.hidden}
          aria-label="Folder"
          multiple
          {...{ webkitdirectory: '' }}
          onChange={(event) => {
            const list = event.currentTarget.files;
            try {
              if (list?.length) onFolder(folderOfDialog(list));
            } catch (error) {
              onError(error as Error);
            }
            event.currentTarget.value = '';
          }}
        />
        <Button size="compact-sm" variant="default" onClick={() => folderInput.current?.click()}>
          Choose a folder
        </Button>
        <Button size="compact-sm" variant="subtle" onClick={onExample}>
          Begin with an example
        </Button>
      </Group>
      {children}
    </div>
  );
}
