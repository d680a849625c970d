// Submits a job: from a file, a folder with its code, a former job or what one types.
import { Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import { submissionQuery } from '../api/queries';
import { Failed, Loading } from '../parts/Notices';
import { usePageTitle } from '../parts/usePageTitle';
import { draftOfFile, draftOfFolder, draftOfRerun, type Draft, emptyDraft, EXAMPLE } from './draft';
import { DraftForm } from './DraftForm';
import { type Folder, jobFilesOf } from './folder';
import { Source } from './Source';

export default function SubmitPage() {
  usePageTitle('Submit');
  const [search] = useSearchParams();
  const from = search.get('from');
  return from ? <Rerun key={from} job={from} /> : <Page key="new" begins={emptyDraft} />;
}

function Rerun({ job }: { job: string }) {
  const { data, error } = useQuery(submissionQuery(job));
  if (error) {
    return (
      <Stack>
        <Failed error={error} />
        <Page begins={emptyDraft} />
      </Stack>
    );
  }
  return data ? <Page begins={draftOfRerun(job, data)} /> : <Loading />;
}

const LARGEST = 1024 * 1024; // bytes of a job file, what the service takes

function Page({ begins }: { begins: Draft }) {
  const [draft, setDraft] = useState(begins);
  const [loads, setLoads] = useState(0); // how often another job has been begun here
  const [error, setError] = useState<Error | null>(null);
  const begin = (next: Draft) => {
    setDraft(next);
    setLoads(loads + 1);
    setError(null);
  };
  const takeFile = async (file: File) => {
    if (file.size > LARGEST) return setError(new Error(`${file.name} is larger than 1 MiB, and so no job file.`));
    begin(draftOfFile(file.name, await file.text()));
  };
  const takeFolder = async (folder: Folder) => {
    const jobFiles = await jobFilesOf(folder);
    begin(draftOfFolder(folder, jobFiles, jobFiles[0]));
  };
  const { folder, rerunOf } = draft;
  return (
    <Stack maw={960}>
      <Title order={1} size="h3">
        {rerunOf ? 'Run again with changes' : 'Submit a job'}
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
      <DraftForm key={loads} draft={draft} onChange={setDraft} onJobFile={begin} checkFirst={draft.text !== ''} />
    </Stack>
  );
}
