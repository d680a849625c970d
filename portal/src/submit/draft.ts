// A job that is about to be submitted.
import type { Schemas } from '../api/client';
import { withoutName } from '../api/jobText';
import type { Folder, JobFile } from './folder';
import { ANY_SNAPSHOT } from './send';
import type { Plan } from './plan';

export interface Draft {
  file: string; // the job file's name, for messages
  text: string;
  base: string; // the absolute path that relative paths count from
  rerunOf?: { job: string; submission: Schemas['JobSubmission'] };
  folder?: { folder: Folder; jobFiles: JobFile[]; jobFile: string };
}

export const EXAMPLE = `$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
display_name: hello
command: echo "rank $RANK of $WORLD_SIZE"
compute: local
resources:
  instance_count: 1
distribution:
  type: pytorch
  process_count_per_instance: 2
`;

// Paths of a browser's machine are unknown; what a job file names beside its code, the service looks for on
// its own machine, where there is nothing at this place.
const NOWHERE = '/portal';

export const emptyDraft: Draft = { file: 'job.yml', text: '', base: NOWHERE };

export function draftOfFile(name: string, text: string): Draft {
  return { file: name, text, base: NOWHERE };
}

export function draftOfFolder(folder: Folder, jobFiles: JobFile[], chosen: JobFile | undefined): Draft {
  const path = chosen?.path ?? 'job.yml';
  const here = path.split('/').slice(0, -1);
  return {
    file: path.split('/').at(-1)!,
    text: chosen?.text ?? '',
    base: [NOWHERE, folder.name, ...here].join('/'),
    folder: { folder, jobFiles, jobFile: path },
  };
}

export function draftOfRerun(job: string, submission: Schemas['JobSubmission']): Draft {
  const text = withoutName(submission.text);
  return { file: submission.file, text, base: submission.base_directory ?? NOWHERE, rerunOf: { job, submission } };
}

/** The body of POST /v1/jobs; `sent`: the snapshots of the folder's code, where they have been sent. */
export function bodyOf(draft: Draft, plan: Plan | undefined, sent?: Record<string, string>): Schemas['Submission'] {
  const body: Schemas['Submission'] = { file: draft.file, text: draft.text, base_directory: draft.base };
  if (draft.rerunOf) {
    const { snapshot, snapshots, origin } = draft.rerunOf.submission;
    return { ...body, snapshot, snapshots, origin: { ...origin, rerun_of: draft.rerunOf.job } };
  }
  if (!plan || plan.codes.length === 0) return body;
  const snapshots = sent ?? Object.fromEntries(plan.codes.map((code) => [code.key, ANY_SNAPSHOT]));
  return { ...body, snapshots };
}
