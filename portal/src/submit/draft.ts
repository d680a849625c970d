// A job that is about to be submitted.
import type { Schemas } from '../api/client';
import { withoutName } from '../api/jobText';
import { isNowhere, NOWHERE } from '../api/submittedFile';
import type { Folder, JobFile } from './folder';
import type { Kept } from './kept';
import type { Plan } from './plan';

export interface Draft {
  file: string; // the job file's name, for messages
  text: string;
  base: string; // the absolute path that relative paths count from, where `place` says nothing
  place: string; // the folder of the service's machine that they count from, or ""
  rerunOf?: { job: string; submission: Schemas['JobSubmission'] };
  folder?: { folder: Folder; jobFiles: JobFile[]; jobFile: string };
  lacks?: { name: string; jobFile: string }; // the folder that the text is of, until it is chosen again
}

// Stands for a snapshot where a check wants to know only that there will be one.
const ANY_SNAPSHOT = `sha256:${'0'.repeat(64)}`;

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

export const emptyDraft: Draft = { file: 'job.yml', text: '', base: NOWHERE, place: '' };

/** What the relative paths of the draft count from. */
export function baseOf({ base, place }: Draft): string {
  return place || base;
}

export function draftOfFile(name: string, text: string): Draft {
  return { file: name, text, base: NOWHERE, place: '' };
}

export function draftOfFolder(folder: Folder, jobFiles: JobFile[], chosen: JobFile | undefined): Draft {
  const path = chosen?.path ?? 'job.yml';
  const here = path.split('/').slice(0, -1);
  return {
    file: path.split('/').at(-1)!,
    text: chosen?.text ?? '',
    base: [NOWHERE, folder.name, ...here].join('/'),
    place: '',
    folder: { folder, jobFiles, jobFile: path },
  };
}

export function draftOfRerun(job: string, submission: Schemas['JobSubmission']): Draft {
  const base = submission.base_directory ?? NOWHERE;
  const place = isNowhere(base) ? '' : base;
  return { file: submission.file, text: withoutName(submission.text), base, place, rerunOf: { job, submission } };
}

/** What is kept of a draft; null where nothing was typed since `begun`. */
export function toKeep({ file, text, place, rerunOf, folder, lacks }: Draft, begun: Draft): Kept | null {
  if (text === begun.text && place === begun.place) return null;
  const of = folder ? { name: folder.folder.name, jobFile: folder.jobFile } : lacks;
  return { file, text, place, rerun: rerunOf !== undefined, folder: of };
}

export function draftOfKept(begun: Draft, { file, text, place, rerun, folder }: Kept): Draft {
  return { ...(rerun ? begun : emptyDraft), file, text, place, lacks: folder };
}

/** The draft of a folder that was chosen; the one that `draft` lacks takes its text, as it was typed. */
export function withFolder({ lacks, text, place }: Draft, folder: Folder, jobFiles: JobFile[]): Draft {
  const ours = lacks?.name === folder.name;
  const chosen = (ours && jobFiles.find(({ path }) => path === lacks.jobFile)) || jobFiles[0];
  const draft = draftOfFolder(folder, jobFiles, chosen);
  return ours && draft.folder?.jobFile === lacks.jobFile ? { ...draft, text, place } : draft;
}

/** The body of POST /v1/jobs; `sent`: the snapshots of the folder's code, where they have been sent. */
export function bodyOf(draft: Draft, plan: Plan | undefined, sent?: Record<string, string>): Schemas['Submission'] {
  const body: Schemas['Submission'] = { file: draft.file, text: draft.text, base_directory: baseOf(draft) };
  if (draft.rerunOf) {
    const { snapshot, snapshots, origin } = draft.rerunOf.submission;
    return { ...body, snapshot, snapshots, origin: { ...origin, rerun_of: draft.rerunOf.job } };
  }
  if (!plan || plan.codes.length === 0) return body;
  const snapshots = sent ?? Object.fromEntries(plan.codes.map((code) => [code.key, ANY_SNAPSHOT]));
  return { ...body, snapshots };
}
