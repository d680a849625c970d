// Has the nodes of a job that runs send the results that they have now.
import { Alert, Button, Group, List, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, service } from '../../api/client';
import { filesQuery } from '../../api/queries';
import { bytes } from '../../parts/format';
import { Failed } from '../../parts/Notices';

export function FetchResults({ job }: { job: string }) {
  const client = useQueryClient();
  const { mutate, isPending, data, error } = useMutation({
    mutationFn: () => answer(service.POST('/v1/jobs/{job}/results', { params: { path: { job }, query: {} } })),
    onSettled: () => client.invalidateQueries({ queryKey: filesQuery(job).queryKey }),
  });
  const files = data?.nodes.reduce((sum, node) => sum + node.files, 0) ?? 0;
  const size = data?.nodes.reduce((sum, node) => sum + node.bytes, 0) ?? 0;
  const come = files === 0 ? 'Nothing new has come.' : `Files that have come: ${files}, ${bytes(size)}.`;
  return (
    <>
      <Group gap="sm">
        <Button size="compact-sm" variant="light" loading={isPending} onClick={() => mutate()}>
          Fetch outputs now
        </Button>
        <Text size="sm" role="status">
          {isPending
            ? 'The nodes are sending what they have …'
            : data
              ? come
              : 'While the job runs, its outputs are on its nodes.'}
        </Text>
      </Group>
      {error && <Failed error={error} />}
      {data && data.missing.length > 0 && (
        <Alert color="yellow" title="Not all nodes have sent theirs">
          <List size="sm">
            {data.missing.map(({ node, why }) => (
              <List.Item key={node}>
                {node}: {why}
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
    </>
  );
}
