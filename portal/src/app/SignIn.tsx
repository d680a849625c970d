import { Alert, Center, Code, Paper, Stack, Text, Title } from '@mantine/core';

/** What who is not signed in sees; `refused` is why a link did not help. */
export function SignIn({ refused }: { refused: string | null }) {
  return (
    <Center mih="80vh" p="md">
      <Paper withBorder p="xl" maw={520}>
        <Stack>
          <Title order={1} size="h2">
            tutti
          </Title>
          {refused && <Alert color="red">{refused}</Alert>}
          <Text>This page shows jobs to who may run them. On the machine of the service, or where its token is, run</Text>
          <Code block>tutti portal</Code>
          <Text>and open the link that it prints. It signs this browser in for a week; the link works once.</Text>
        </Stack>
      </Paper>
    </Center>
  );
}
