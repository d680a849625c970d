// What one can do with a job: end it, rerun it, compare it, take its command.
import { Alert, Button, Group, Menu, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { cancel, rerun } from '../../api/actions';
import type { Job } from '../../api/client';
import { hasEnded, submissionQuery } from '../../api/queries';
import { submittedFile } from '../../api/submittedFile';
import { CopyCommand } from '../../parts/CopyCommand';

const CLOSE = { 'aria-label': 'Close' };

export function JobActions({ job }: { job: Job }) {
  const [asks, asking] = useDisclosure(false);
  const [asksAgain, askingAgain] = useDisclosure(false);
  const [tells, telling] = useDisclosure(false);
  // A step or trial is started by its parent, and has no submission of its own.
  const isWhole = job.parent === null;
  const { data: submission } = useQuery({ ...submissionQuery(job.id), enabled: isWhole });
  const former = submission?.former;
  const id = encodeURIComponent(job.id);
  return (
    <>
      <Group gap="xs" wrap="wrap">
        {!hasEnded(job.state) && (
          <Button size="xs" variant="light" color="red" onClick={asking.open}>
            Cancel
          </Button>
        )}
        {isWhole && (
          <Button size="xs" variant="default" onClick={askingAgain.open}>
            Rerun
          </Button>
        )}
        <Menu position="bottom-end" withInitialFocusPlaceholder={false}>
          <Menu.Target>
            <Button size="xs" variant="default">
              More
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {isWhole && (
              <Menu.Item component={Link} href={`/submit?from=${id}`}>
                Rerun with changes
              </Menu.Item>
            )}
            {former && (
              <Menu.Item component={Link} href={`/compare?jobs=${id},${encodeURIComponent(former)}`}>
                Compare with the run before
              </Menu.Item>
            )}
            {!former && (
              <Menu.Item component={Link} href={`/compare?jobs=${id}`}>
                Compare with other jobs
              </Menu.Item>
            )}
            <Menu.Item onClick={telling.open}>Commands that do the same</Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </Group>
      <CancelQuestion job={job} opened={asks} onClose={asking.close} />
      <RerunQuestion job={job} opened={asksAgain} onClose={askingAgain.close} />
      <Modal
        opened={tells}
        onClose={telling.close}
        closeButtonProps={CLOSE}
        title="Commands that do the same"
        size="lg"
      >
        <Commands job={job} file={submission ? submittedFile(submission) : null} />
      </Modal>
    </>
  );
}

function CancelQuestion({ job, opened, onClose }: { job: Job; opened: boolean; onClose(): void }) {
  const end = useMutation({ mutationFn: () => cancel(job.id), onSuccess: onClose });
  const what = job.type === 'command' ? 'Its processes end' : 'It and all that it has started end';
  return (
    <Modal opened={opened} onClose={onClose} closeButtonProps={CLOSE} title={`Cancel ${job.display_name}?`}>
      <Stack>
        <Text>{what}; logs and results up to now are kept.</Text>
        {end.error && (
          <Alert color="red" role="alert">
            {end.error.message}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Let it run
          </Button>
          <Button color="red.9" loading={end.isPending} onClick={() => end.mutate()}>
            Cancel the job
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function RerunQuestion({ job, opened, onClose }: { job: Job; opened: boolean; onClose(): void }) {
  const [, go] = useLocation();
  const again = useMutation({
    mutationFn: () => rerun(job.id),
    onSuccess: (next) => {
      onClose();
      go(`/jobs/${encodeURIComponent(next.id)}`);
    },
  });
  return (
    <Modal opened={opened} onClose={onClose} closeButtonProps={CLOSE} title={`Rerun ${job.display_name}?`}>
      <Stack>
        <Text>
          It is submitted as it was, with the code that it had, as a new job; this one stays as it is. “Rerun with
          changes”, below More, lets you edit its file first.
        </Text>
        {again.error && (
          <Alert color="red" role="alert" title="The rerun was not submitted">
            {again.error.message}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Not now
          </Button>
          <Button loading={again.isPending} onClick={() => again.mutate()} data-autofocus>
            Rerun
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function Commands({ job, file }: { job: Job; file: string | null }) {
  const all: [string, string][] = [['Show it', `tutti job show ${job.id}`]];
  if (job.type === 'command') all.push(['Follow its output', `tutti job stream ${job.id}`]);
  if (job.parent === null) {
    if (file) all.push(['Submit its file as it is now', `tutti run ${quoted(file)}`]);
    all.push(['Rerun it with the code that it had', `tutti job rerun ${job.id}`]);
  }
  all.push(['Download logs and results', `tutti job download ${job.id}`]);
  if (!hasEnded(job.state)) all.push(['Cancel it', `tutti job cancel ${job.id}`]);
  return (
    <Stack gap="sm">
      {all.map(([what, command]) => (
        <div key={what}>
          <Text size="sm">{what}</Text>
          <CopyCommand command={command} />
        </div>
      ))}
    </Stack>
  );
}

/** For a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
