// What a job was submitted as, in the parts that the steps and the trials need.
import { queryOptions } from '@tanstack/react-query';
import { answer, type Job, service } from '../../api/client';
import { jobQuery, queries } from '../../api/queries';

/** A step of a pipeline as it was read from the job file. */
export interface StepSpec {
  name: string;
  /** By input: "jobs.prepare.outputs.data" is another step's, "inputs.x" the pipeline's. */
  inputs_from: Record<string, string>;
  job: JobSpec;
}

/** A parameter of a search space. */
export interface ParameterSpec {
  name: string;
  type: string;
  values: string[]; // of a choice
}

export interface SweepSpec {
  parameters: ParameterSpec[];
  metric: string;
  maximize: boolean;
  max_trials: number;
}

export interface JobSpec {
  steps?: StepSpec[];
  sweep?: SweepSpec;
  /** The step that goes before all others, and the one after them. */
  first_step?: string;
  last_step?: string;
}

/** A step has no submission of its own: what it is stands in its pipeline's. */
async function specOf(job: Pick<Job, 'id' | 'parent' | 'step'>): Promise<JobSpec | null> {
  if (!job.parent) {
    const submission = await answer(service.GET('/v1/jobs/{job}/submission', { params: { path: { job: job.id } } }));
    return (submission.job ?? null) as JobSpec | null;
  }
  const parent = await queries.fetchQuery({ ...jobQuery(job.parent), staleTime: Infinity });
  const spec = await specOf(parent);
  return spec?.steps?.find((step) => step.name === job.step)?.job ?? null;
}

export const specQuery = (job: Job) =>
  queryOptions({ queryKey: ['spec', job.id], queryFn: () => specOf(job), staleTime: Infinity });
