// What a person does with a job.
import { answer, type Schemas, service, ServiceError } from './client';
import { withoutName } from './jobText';
import { queries } from './queries';

const WAITS = [500, 1_000, 2_000, 4_000, 8_000]; // milliseconds before a lost submission is sent again

/** Ends a job in whatever state it is; one that has ended stays as it is. */
export async function cancel(job: string): Promise<Schemas['Job']> {
  const canceled = await answer(service.POST('/v1/jobs/{job}/cancel', { params: { path: { job } } }));
  void queries.invalidateQueries({ queryKey: ['job', job] });
  return canceled;
}

/** Reruns a job: submits it as it was, with the code that it had, and returns the new one. */
export async function rerun(job: string): Promise<Schemas['Job']> {
  const { file, text, base_directory, snapshot, snapshots, origin } = await answer(
    service.GET('/v1/jobs/{job}/submission', { params: { path: { job } } }),
  );
  if (!base_directory) {
    throw new ServiceError(
      400,
      'invalid_argument',
      'It was taken by an older tutti, which did not note where its file lay: submit the file itself.',
    );
  }
  return submit({
    file,
    text: withoutName(text),
    base_directory,
    snapshot,
    snapshots,
    origin: { ...origin, rerun_of: job },
  });
}

/** Submits a job once, over answers that are lost: the nonce has the service know the same one again. */
export async function submit(submission: Omit<Schemas['Submission'], 'nonce'>): Promise<Schemas['Job']> {
  const body = { ...submission, nonce: nonce() };
  for (const wait of [...WAITS, null]) {
    try {
      return await answer(service.POST('/v1/jobs', { body }));
    } catch (error) {
      if (wait === null || !(error instanceof ServiceError) || error.status !== 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  throw new Error('The loop returns or throws.');
}

function nonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
