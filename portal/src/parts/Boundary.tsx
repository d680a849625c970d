// What a part of the page shows when it cannot be shown: a script that did not come, or a fault in one.
import { Button, Code, Stack, Text } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { Empty } from './Notices';

interface Props {
  /** What is shown inside; another one is tried afresh. */
  place?: string;
  children: ReactNode;
}

export class Boundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.error && before.place !== this.props.place) this.setState({ error: null });
  }

  override render(): ReactNode {
    return this.state.error ? <Broken error={this.state.error} /> : this.props.children;
  }
}

function Broken({ error }: { error: Error }) {
  return (
    <div role="alert">
      <Empty title="This page cannot be shown">
        <Text ta="center">A part of it did not load or has failed, as after an update of tutti.</Text>
        <Stack align="center" gap="md">
          <Button onClick={() => location.reload()}>Reload</Button>
          <Code style={{ overflowWrap: 'anywhere' }}>{error.message}</Code>
        </Stack>
      </Empty>
    </div>
  );
}
