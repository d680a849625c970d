import { Alert, Button, Center, Group, Paper, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { commandFor, openSession, wordIn } from '../api/session';
import { CopyCommand } from '../parts/CopyCommand';
import { usePageTitle } from '../parts/usePageTitle';

/** What who is not signed in sees; `refused` is why a link did not help. The page stays where its address leads. */
export function SignIn({ refused }: { refused: string | null }) {
  usePageTitle('Sign in');
  const [typed, setTyped] = useState('');
  const { mutate, error, isPending } = useMutation({
    mutationFn: openSession,
    onSuccess: () => location.reload(),
  });
  useEffect(() => {
    // A link that is opened in this tab changes the fragment alone.
    const onLink = () => wordIn(location.hash) && location.reload();
    window.addEventListener('hashchange', onLink);
    return () => window.removeEventListener('hashchange', onLink);
  }, []);
  const told = error?.message ?? refused;
  return (
    <Center mih="80vh" p="md">
      <Paper withBorder p="xl" maw={520}>
        <Stack>
          <Title order={1} size="h2">
            tutti
          </Title>
          {told && (
            <Alert color="red" role="alert">
              {told}
            </Alert>
          )}
          <Text>Sign in to see jobs: on the machine of the service, or where its token is, run</Text>
          <CopyCommand command={commandFor(location)} />
          <Text>and open the link that it prints, or give it here. It works once, and signs this browser in for a week.</Text>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              mutate(wordIn(typed) ?? typed.trim());
            }}
          >
            <Group align="end" wrap="nowrap">
              <TextInput label="Link, or its word" flex={1} autoComplete="off" spellCheck={false} required value={typed}
                onChange={(event) => setTyped(event.currentTarget.value)} />
              <Button type="submit" loading={isPending}>
                Sign in
              </Button>
            </Group>
          </form>
        </Stack>
      </Paper>
    </Center>
  );
}
