// The job file to be edited, checked and submitted.
import { Alert, Anchor, Button, Group, List, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { submit as submitJob } from '../api/actions';
import { answer, service, ServiceError } from '../api/client';
import { isNowhere } from '../api/submittedFile';
import { Failed } from '../parts/Notices';
import { CodeSummary } from './CodeSummary';
import { baseOf, bodyOf, type Draft, draftOfFolder } from './draft';
import { Editor, type EditorHandle } from './Editor';
import { planOf } from './plan';
import { sendCode, whyNot } from './send';
import { codePaths, type Fault, faultsOf, namesRelativePath } from './yaml';

interface Props {
  draft: Draft;
  onChange(draft: Draft): void;
  onJobFile(draft: Draft): void;
  onSubmitted(): void;
  /** Whether it is checked without being asked to, as what was dropped is. */
  checkFirst: boolean;
}

export function DraftForm({ draft, onChange, onJobFile, onSubmitted, checkFirst }: Props) {
  const [, go] = useLocation();
  const [step, setStep] = useState('');
  const editor = useRef<EditorHandle>(null);
  const plan = usePlan(draft);
  const refusal = plan.data ? whyNot(plan.data.codes) : null;

  const check = useMutation({
    mutationFn: () => answer(service.POST('/v1/job-checks', { body: bodyOf(draft, plan.data) })),
  });
  const submit = useMutation({
    mutationFn: async () => {
      const sent = plan.data && plan.data.codes.length > 0 ? await sendCode(plan.data.codes, setStep) : undefined;
      setStep('Submitting …');
      return submitJob(bodyOf(draft, plan.data, sent));
    },
    onSuccess: (job) => {
      onSubmitted();
      go(`/jobs/${encodeURIComponent(job.id)}`);
    },
    onSettled: () => setStep(''),
  });
  const ready = !draft.folder || (plan.isSuccess && !plan.isPlaceholderData);
  const { mutate: checkNow } = check;
  const wantsCheck = useRef(checkFirst); // what is typed later is checked when one asks for it
  useEffect(() => {
    if (!wantsCheck.current || !ready) return;
    wantsCheck.current = false;
    checkNow();
  }, [ready, checkNow]);

  const change = (next: Draft) => {
    check.reset();
    submit.reset();
    onChange(next);
  };
  const checkAgain = () => {
    submit.reset();
    checkNow();
  };
  const error = submit.error ?? check.error;
  const faults = error instanceof ServiceError && error.status === 400 ? faultsOf(error.message, draft.file) : [];
  const blocked = draft.text.trim() === '' || refusal !== null || !ready || submit.isPending || !isPlace(draft.place);
  return (
    <Stack>
      {draft.folder && draft.folder.jobFiles.length > 1 && (
        <Select
          label="Job file in the folder"
          data={draft.folder.jobFiles.map(({ path }) => path)}
          value={draft.folder.jobFile}
          allowDeselect={false}
          onChange={(path) => {
            const { folder, jobFiles } = draft.folder!;
            onJobFile(draftOfFolder(folder, jobFiles, jobFiles.find((each) => each.path === path)));
          }}
        />
      )}
      <Editor text={draft.text} onChange={(text) => change({ ...draft, text })} faults={faults} handle={editor} />
      {plan.data && <CodeSummary plan={plan.data} refusal={refusal} />}
      {plan.error && <Alert color="red">{plan.error.message}</Alert>}
      {(namesRelativePath(draft.text) || !isPlace(draft.place)) && (
        <TextInput
          label="Relative paths count from"
          description="The folder on the service’s machine with the files that the job file names besides its code."
          styles={{ description: { color: 'inherit' } }}
          value={draft.place}
          placeholder={isNowhere(draft.base) ? 'for example /home/me/project' : draft.base}
          error={isPlace(draft.place) ? undefined : 'This is to begin with /'}
          onChange={(event) => change({ ...draft, place: event.currentTarget.value })}
        />
      )}
      <Group>
        <Button onClick={() => submit.mutate()} loading={submit.isPending} disabled={blocked}>
          Submit
        </Button>
        <Button variant="default" onClick={checkAgain} loading={check.isPending} disabled={blocked}>
          Check
        </Button>
        <Text size="sm" role="status">
          {step}
        </Text>
      </Group>
      <Verdict
        faults={faults}
        error={error}
        warnings={check.data?.warnings}
        onLine={(line) => editor.current?.goTo(line)}
      />
    </Stack>
  );
}

function isPlace(text: string): boolean {
  return text === '' || text.startsWith('/');
}

function usePlan(draft: Draft) {
  const { folder, text } = draft;
  const base = baseOf(draft);
  const codes = codePaths(text);
  return useQuery({
    queryKey: ['plan', folder?.folder.reading, folder?.jobFile, base, codes],
    queryFn: () => planOf(folder!.folder, folder!.jobFile, base, text),
    enabled: folder !== undefined,
    gcTime: 0,
    staleTime: 0,
    placeholderData: (former) => former,
  });
}

interface VerdictProps {
  faults: Fault[];
  error: Error | null;
  warnings: string[] | undefined;
  onLine(line: number): void;
}

function Verdict({ faults, error, warnings, onLine }: VerdictProps) {
  if (faults.length > 0) {
    return (
      <Alert color="red" role="alert" title="The service does not take this job" id="job-file-faults">
        <List size="sm">
          {faults.map(({ line, text }, index) => (
            <List.Item key={index} style={{ overflowWrap: 'anywhere' }}>
              {line !== null && (
                <Anchor
                  component="button"
                  type="button"
                  size="sm"
                  c="inherit"
                  underline="always"
                  onClick={() => onLine(line)}
                >
                  Line {line}
                </Anchor>
              )}
              {line !== null && ': '}
              {text}
            </List.Item>
          ))}
        </List>
      </Alert>
    );
  }
  if (error) return <Failed error={error} />;
  if (!warnings) return null;
  return (
    <Alert color={warnings.length > 0 ? 'yellow' : 'green'} role="status" title="The service would take this job">
      {warnings.length > 0 && (
        <List size="sm">
          {warnings.map((warning) => (
            <List.Item key={warning}>{warning}</List.Item>
          ))}
        </List>
      )}
    </Alert>
  );
}
