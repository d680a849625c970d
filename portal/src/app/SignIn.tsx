import { Alert, Anchor, Center, Code, Paper, Stack, Text, Title } from '@mantine/core';
import { usePageTitle } from '../parts/usePageTitle';

/** What who is not signed in sees; `refused` is why a link did not help. */
export function SignIn({ refused }: { refused: string | null }) {
  usePageTitle('Sign in');
  return (
    <Center mih="80vh" p="md">
      <Paper withBorder p="xl" maw={520}>
        <Stack>
          <Title order={1} size="h2">
            tutti
          </Title>
          {refused && <Alert color="red">{refused}</Alert>}
          <Text>Sign in to see jobs: on the machine of the service, or where its token is, run</Text>
          <Code block>tutti portal</Code>
          <Text>and open the link that it prints. It signs this browser in for a week; the link works once.</Text>
          {location.hostname === 'localhost' && <OtherName />}
        </Stack>
      </Paper>
    </Center>
  );
}

/** The link that `tutti portal` prints is at 127.0.0.1, and a session is bound to the name that it was opened at. */
function OtherName() {
  const there = new URL(location.href);
  there.hostname = '127.0.0.1';
  return (
    <Text size="sm">
      A session is valid only for the host name at which it was opened. If you are signed in at 127.0.0.1, open{' '}
      <Anchor href={there.href} inherit underline="always" style={{ overflowWrap: 'anywhere' }}>
        {there.href}
      </Anchor>
    </Text>
  );
}
