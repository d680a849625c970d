// A command of the command line, with a button that copies it.
import { Button, Code, CopyButton, Group } from '@mantine/core';

export function CopyCommand({ command }: { command: string }) {
  return (
    <Group gap={4} wrap="nowrap" style={{ minWidth: 0 }}>
      <Code style={{ overflowX: 'auto', whiteSpace: 'nowrap' }} c="inherit">
        {command}
      </Code>
      <CopyButton value={command}>
        {({ copied, copy }) => (
          <Button variant="default" size="compact-xs" onClick={copy} aria-label={`Copy: ${command}`} flex="none">
            {copied ? 'Copied' : 'Copy'}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}
