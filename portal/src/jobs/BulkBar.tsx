// What can be done with the jobs that are chosen.
import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { cancel, rerun } from '../api/actions';
import type { JobSummary } from '../api/client';
import { hasEnded } from '../api/queries';
import { MOST_COMPARED } from '../parts/mostCompared';
import { countOf, doAll, type Outcome } from './bulk';
import { BulkQuestion } from './BulkQuestion';
import css from './jobs.module.css';
import { askAgain } from './jobsQuery';

export type Action = 'cancel' | 'rerun';

export interface Done extends Outcome<string> {
  action: Action;
}

const ACTIONS: Record<Action, (job: string) => Promise<string>> = {
  cancel: async (job) => (await cancel(job)).id,
  rerun: async (job) => (await rerun(job)).id,
};

interface BulkProps {
  chosen: JobSummary[];
  onClear(): void;
  onDone(done: Done): void;
}

export function BulkBar({ chosen, onClear, onDone }: BulkProps) {
  const [question, setQuestion] = useState<Action | null>(null);
  const [progress, setProgress] = useState<string | null>(null);
  const live = chosen.some((job) => !hasEnded(job.state));
  const act = async (action: Action) => {
    setQuestion(null);
    // A job that has ended stays as it is, and so need not be asked for.
    const jobs = action === 'cancel' ? chosen.filter((job) => !hasEnded(job.state)) : chosen;
    const tell = (through: number) => setProgress(`${through} of ${countOf(jobs.length)}`);
    tell(0);
    const outcome = await doAll(jobs, ACTIONS[action], tell);
    setProgress(null);
    askAgain();
    onDone({ action, ...outcome });
  };
  const tooMany = chosen.length > MOST_COMPARED;
  const compare = `/compare?jobs=${chosen.map((job) => encodeURIComponent(job.id)).join(',')}`;
  return (
    <div className={`${css.line} ${css.bulk}`} role="group" aria-label="Chosen jobs">
      <Text size="sm" fw={600} role="status">
        {progress ?? `${chosen.length.toLocaleString('en-US')} chosen`}
      </Text>
      <Button
        size="compact-sm"
        color="red"
        variant="light"
        disabled={!live || progress !== null}
        onClick={() => setQuestion('cancel')}
      >
        Cancel
      </Button>
      <Button size="compact-sm" variant="light" disabled={progress !== null} onClick={() => setQuestion('rerun')}>
        Rerun
      </Button>
      {tooMany && (
        <Button size="compact-sm" variant="light" disabled aria-describedby="most-compared">
          Compare
        </Button>
      )}
      {chosen.length > 1 && !tooMany && (
        <Button size="compact-sm" variant="light" component={Link} href={compare}>
          Compare
        </Button>
      )}
      <Button size="compact-sm" variant="subtle" onClick={onClear}>
        Clear
      </Button>
      {tooMany && (
        <Text size="xs" id="most-compared">
          {MOST_COMPARED} jobs at most can be compared
        </Text>
      )}
      <BulkQuestion action={question} jobs={chosen} onYes={act} onNo={() => setQuestion(null)} />
    </div>
  );
}
