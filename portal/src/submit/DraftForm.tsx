// The job file to be edited, checked and submitted.
import { Alert, Anchor, Button, Group, List, Select, Stack, Text, TextInput } from '@mantine/core';
import { useDocumentVisibility } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { submit as submitJob } from '../api/actions';
import { answer, type Schemas, service, ServiceError } from '../api/client';
import { isNowhere } from '../api/submittedFile';
import { Failed } from '../parts/Notices';
import { CodeSummary } from './CodeSummary';
import { baseOf, bodyOf, type Draft, draftOfFolder } from './draft';
import { Editor, type EditorHandle, FAULTS } from './Editor';
import { planOf } from './plan';
import { sendCode, whyNot } from './send';
import { codePaths, type Fault, faultsOf, namesRelativePath } from './yaml';

interface Props {
  draft: Draft;
  onChange(draft: Draft): void;
  onJobFile(draft: Draft): void;
  onSubmitted(): void;
  /** Whether it is checked at once, as what was dropped is. */
  checkFirst: boolean;
}

export function DraftForm({ draft, onChange, onJobFile, onSubmitted, checkFirst }: Props) {
  const [, go] = useLocation();
  const [step, setStep] = useState('');
  const editor = useRef<EditorHandle>(null);
  const plan = usePlan(draft);
  const tooMuch = plan.data ? whyNot(plan.data.codes) : null;

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
  const empty = draft.text.trim() === '';
  const ready = !empty && isPlace(draft.place) && (!draft.folder || (plan.isSuccess && !plan.isPlaceholderData));
  const check = useCheck(bodyOf(draft, plan.data), ready, checkFirst);
  const change = (next: Draft) => {
    submit.reset();
    onChange(next);
  };
  const refusal = submit.error ?? (empty ? null : (check.error ?? check.data?.refusal ?? null));
  const faults = refusal instanceof ServiceError && refusal.status === 400 ? faultsOf(refusal.message, draft.file) : [];
  const blocked = tooMuch !== null || !ready || submit.isPending;
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
      {plan.data && <CodeSummary plan={plan.data} refusal={tooMuch} />}
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
        <Button
          variant="default"
          onClick={() => {
            submit.reset();
            check.now();
          }}
          disabled={blocked}
        >
          Check
        </Button>
        <Text size="sm" role="status">
          {step}
        </Text>
      </Group>
      <Verdict
        faults={faults}
        error={refusal}
        warnings={empty ? undefined : check.data?.warnings}
        onFault={(fault) => editor.current?.goTo(fault)}
      />
    </Stack>
  );
}

function isPlace(text: string): boolean {
  return text === '' || text.startsWith('/');
}

const PAUSE = 500; // milliseconds after the last change until it is checked

/**
 * What the service says of a submission, asked when nothing has changed for a while, once for each text, and never by
 * a page that is hidden. Until the newest is answered it is what was said of the one before.
 */
function useCheck(body: Schemas['Submission'], ready: boolean, checkFirst: boolean) {
  const visible = useDocumentVisibility() === 'visible';
  const typed = JSON.stringify(body);
  const [settled, setSettled] = useState({ typed: '', draft: true });
  const pause = useRef(checkFirst ? 0 : PAUSE);
  useEffect(() => {
    if (!ready) return undefined;
    const settle = () => setSettled((last) => (last.typed === typed ? last : { typed, draft: true }));
    const timer = setTimeout(settle, pause.current);
    pause.current = PAUSE;
    return () => clearTimeout(timer);
  }, [typed, ready]);
  const { data, error, refetch } = useQuery({
    queryKey: ['check', settled],
    queryFn: ({ signal }) => checked(JSON.parse(settled.typed) as Schemas['Submission'], settled.draft, signal),
    enabled: settled.typed !== '' && visible,
    placeholderData: (former) => former,
    staleTime: Infinity,
    gcTime: 0,
  });
  // Half of a place's name is none that a store should be asked for: it is by the button alone.
  const now = () => (settled.typed === typed && !settled.draft ? void refetch() : setSettled({ typed, draft: false }));
  return { data, error, now };
}

interface Checked {
  warnings?: string[];
  refusal: ServiceError | null;
}

async function checked(body: Schemas['Submission'], draft: boolean, signal: AbortSignal): Promise<Checked> {
  try {
    const params = { query: draft ? { draft } : {} };
    const { warnings } = await answer(service.POST('/v1/job-checks', { params, body, signal }));
    return { warnings, refusal: null };
  } catch (error) {
    if (error instanceof ServiceError && error.status >= 400 && error.status < 500) return { refusal: error };
    throw error;
  }
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
  onFault(fault: Fault): void;
}

/** Read out when it changes, once one who types has paused. */
function Verdict(props: VerdictProps) {
  return (
    <div aria-live="polite">
      <Findings {...props} />
    </div>
  );
}

function Findings({ faults, error, warnings, onFault }: VerdictProps) {
  if (faults.length > 0) {
    return (
      <Alert color="red" role="group" title="The service does not take this job" id={FAULTS}>
        <List size="sm">
          {faults.map((fault, index) => (
            <List.Item key={index} style={{ overflowWrap: 'anywhere' }}>
              {fault.line !== null && (
                <Anchor
                  component="button"
                  type="button"
                  size="sm"
                  c="inherit"
                  underline="always"
                  onClick={() => onFault(fault)}
                >
                  Line {fault.line}
                </Anchor>
              )}
              {fault.line !== null && ': '}
              {fault.text}
            </List.Item>
          ))}
        </List>
      </Alert>
    );
  }
  if (error) return <Failed error={error} />;
  if (!warnings) return null;
  return (
    <Alert color={warnings.length > 0 ? 'yellow' : 'green'} role="group" title="The service would take this job">
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
