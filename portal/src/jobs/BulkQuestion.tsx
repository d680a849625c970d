// Asks before something is done to jobs, and says what it would do.
import { Button, Group, List, Modal, Text } from '@mantine/core';
import { useRef } from 'react';
import type { JobSummary } from '../api/client';
import { hasEnded } from '../api/queries';
import type { Action } from './BulkBar';
import { countOf, whatCancelEnds } from './bulk';
import { nameOf } from './nameOf';

const NAMED = 5; // jobs that the question names

interface QuestionProps {
  /** Null: nothing is asked. */
  action: Action | null;
  jobs: JobSummary[];
  onYes(action: Action): void;
  onNo(): void;
}

export function BulkQuestion({ action, jobs, onYes, onNo }: QuestionProps) {
  const last = useRef<Action>('rerun'); // What it asks stays while it fades.
  if (action) last.current = action;
  const asked = last.current;
  const concerned = asked === 'cancel' ? jobs.filter((job) => !hasEnded(job.state)) : jobs;
  const what = countOf(concerned.length);
  const lines =
    asked === 'cancel'
      ? whatCancelEnds(jobs)
      : ['Each is submitted as it was, with the code that it had, as a new job.'];
  return (
    <Modal
      opened={action !== null}
      onClose={onNo}
      title={asked === 'cancel' ? `Cancel ${what}?` : `Rerun ${what}?`}
      closeButtonProps={{ 'aria-label': 'Close' }}
      transitionProps={{ duration: 100 }}
    >
      {lines.map((line) => (
        <Text key={line} size="sm">
          {line}
        </Text>
      ))}
      <List size="sm" my="sm" style={{ overflowWrap: 'anywhere' }}>
        {concerned.slice(0, NAMED).map((job) => (
          <List.Item key={job.id}>
            <bdi>{nameOf(job)}</bdi> ({job.state})
          </List.Item>
        ))}
        {concerned.length > NAMED && <List.Item>and {concerned.length - NAMED} more</List.Item>}
      </List>
      <Group justify="end">
        <Button data-autofocus={asked === 'cancel' || undefined} variant="default" onClick={onNo}>
          {asked === 'cancel' ? 'Keep them' : 'Not now'}
        </Button>
        <Button
          data-autofocus={asked === 'rerun' || undefined}
          color={asked === 'cancel' ? 'red.8' : undefined}
          onClick={() => onYes(asked)}
        >
          {asked === 'cancel' ? `Cancel ${what}` : `Rerun ${what}`}
        </Button>
      </Group>
    </Modal>
  );
}
