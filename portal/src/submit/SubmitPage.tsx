// Submits a job: from a file, a folder with its code, a former job or what one types.
import { Alert, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useSearchParams } from 'wouter';
import { submissionQuery } from '../api/queries';
import { Failed, Loading } from '../parts/Notices';
import { usePageTitle } from '../parts/usePageTitle';
import {
  draftOfFile, draftOfKept, draftOfRerun, type Draft, emptyDraft, EXAMPLE, toKeep, withFolder,
} from './draft';
import { DraftForm } from './DraftForm';
import { type Folder, jobFilesOf } from './folder';
import { drop, keep, keptOf } from './kept';
import { Source } from './Source';

const NEW = 'new';

export default function SubmitPage() {
  usePageTitle('Submit');
  const [search] = useSearchParams();
  const from = search.get('from');
  return from ? <Rerun key={from} job={from} /> : <Page key={NEW} page={NEW} begins={emptyDraft} />;
}

function Rerun({ job }: { job: string }) {
  const { data, error } = useQuery(submissionQuery(job));
  if (error) {
    return (
      <Stack>
        <Failed error={error} />
        <Page page={NEW} begins={emptyDraft} />
      </Stack>
    );
  }
  return data ? <Page page={job} begins={draftOfRerun(job, data)} /> : <Loading />;
}

const LARGEST = 1024 * 1024; // bytes of a job file, what the service takes

/** `page`: under which name it is kept what one types, with which it begins then. */
function Page({ page, begins }: { page: string; begins: Draft }) {
  const [begun] = useState(begins);
  const [kept, setKept] = useState(() => keptOf(page));
  const [draft, setDraft] = useState(() => (kept ? draftOfKept(begun, kept) : begun));
  const [loads, setLoads] = useState(0); // how often another job has been begun here
  const [error, setError] = useState<Error | null>(null);
  const begin = (next: Draft) => {
    setDraft(next);
    setLoads(loads + 1);
    setError(null);
    setKept(null);
  };
  useEffect(() => {
    const now = toKeep(draft, begun);
    if (now) keep(page, now);
    else drop(page);
  }, [page, draft, begun]);
  const takeFile = async (file: File) => {
    if (file.size > LARGEST) return setError(new Error(`${file.name} is larger than 1 MiB, and so no job file.`));
    begin(draftOfFile(file.name, await file.text()));
  };
  const takeFolder = async (folder: Folder) => {
    begin(withFolder(draft, folder, await jobFilesOf(folder)));
  };
  const { folder, lacks, rerunOf } = draft;
  return (
    <Stack maw={960}>
      <Title order={1} size="h3">
        {rerunOf ? 'Rerun with changes' : 'Submit a job'}
      </Title>
      <Source
        onFile={(file) => void takeFile(file).catch(setError)}
        onFolder={(dropped) => void takeFolder(dropped).catch(setError)}
        onExample={() => begin({ ...emptyDraft, text: EXAMPLE })}
        onError={setError}
      >
        {folder && (
          <Group mt="sm">
            <Text size="sm">
              Folder “{folder.folder.name}”, {folder.folder.files.size} files.{' '}
              {folder.jobFiles.length === 0 && 'No job file is in it: write one below.'}
            </Text>
          </Group>
        )}
        {rerunOf && (
          <Text size="sm" mt="sm">
            From job {rerunOf.job}, with the code that it had.
          </Text>
        )}
      </Source>
      {error && <Failed error={error} />}
      {kept && (
        <Alert color="blue" role="status" py="xs" title="This is what you had typed here before">
          <Group>
            {lacks && <Text size="sm">The files of the folder “{lacks.name}” were not kept: choose it again.</Text>}
            <Button size="compact-sm" variant="default" onClick={() => begin(begun)}>
              Discard it
            </Button>
          </Group>
        </Alert>
      )}
      <DraftForm
        key={loads}
        draft={draft}
        onChange={setDraft}
        onJobFile={begin}
        onSubmitted={() => drop(page)}
        checkFirst={draft.text !== '' && !lacks}
      />
    </Stack>
  );
}
