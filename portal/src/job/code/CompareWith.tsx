// Chooses the job that a job is compared with.
import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { answer, service } from '../../api/client';

interface Props {
  job: string;
  former: string | null; // the script's last job, which is taken unless another one is chosen
  other: string | null;
  onOther(other: string | null): void;
}

const jobsQuery = {
  queryKey: ['jobs to compare with'],
  queryFn: () => answer(service.GET('/v1/job-summaries', { params: { query: { limit: 500 } } })),
  staleTime: 30_000,
};

export function CompareWith({ job, former, other, onOther }: Props) {
  const { data } = useQuery(jobsQuery);
  const known = new Map(data?.jobs.map(({ id, display_name }) => [id, display_name]));
  if (former && !known.has(former)) known.set(former, former);
  if (other && !known.has(other)) known.set(other, other);
  known.delete(job);
  const label = (id: string, name: string) =>
    `${id === former ? 'Last job before it: ' : ''}${id}${name === id ? '' : ` (${name})`}`;
  return (
    <Select
      label="Compare with"
      placeholder="Choose a job"
      searchable
      limit={100}
      data={[...known].map(([id, name]) => ({ value: id, label: label(id, name) }))}
      value={other}
      onChange={onOther}
      nothingFoundMessage="No job has this in its name"
      maw={520}
      size="sm"
      allowDeselect={false}
    />
  );
}
