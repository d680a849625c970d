// What became of something that was done to many jobs, with the names of those where it did not work.
import { Alert, Anchor, List, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Done } from './BulkBar';
import { countOf } from './bulk';
import { nameOf } from './nameOf';

const NAMED = 20; // jobs that are told by name

export function BulkOutcome({ outcome, onClose }: { outcome: Done; onClose(): void }) {
  const { action, done, failed } = outcome;
  const cancels = action === 'cancel';
  return (
    <Alert
      color={failed.length > 0 ? 'red' : 'green'}
      role={failed.length > 0 ? 'alert' : 'status'}
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
      py="xs"
      my="xs"
      style={{ overflowWrap: 'anywhere', maxHeight: '30vh', overflowY: 'auto' }}
    >
      {done.length > 0 && (
        <Text size="sm">
          {cancels ? `${countOf(done.length)} canceled.` : `${countOf(done.length)} rerun: `}
          {!cancels &&
            done.slice(0, NAMED).map(({ job, result }, index) => (
              <span key={result}>
                {index > 0 && ', '}
                <Anchor
                  component={Link}
                  href={`/jobs/${encodeURIComponent(result)}`}
                  title={`Rerun of ${job.id}`}
                  underline="always"
                  inherit
                >
                  {result}
                </Anchor>
              </span>
            ))}
        </Text>
      )}
      {failed.length > 0 && (
        <>
          <Text size="sm" fw={600}>
            {countOf(failed.length)} could not be {cancels ? 'canceled' : 'rerun'}:
          </Text>
          <List size="sm">
            {failed.slice(0, NAMED).map(({ job, message }) => (
              <List.Item key={job.id}>
                <bdi>{nameOf(job)}</bdi>: <bdi>{message}</bdi>
              </List.Item>
            ))}
            {failed.length > NAMED && <List.Item>and {failed.length - NAMED} more</List.Item>}
          </List>
        </>
      )}
    </Alert>
  );
}
