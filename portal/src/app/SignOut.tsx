import { Affix, Button, NavLink, Notification } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { signOut } from '../api/session';

/** `row`: it is a row of the menu that a narrow page has. */
export function SignOut({ row }: { row?: boolean }) {
  const { mutate, error, isPending, reset } = useMutation({ mutationFn: signOut });
  return (
    <>
      {row ? (
        <NavLink component="button" label="Sign out" px="sm" disabled={isPending} onClick={() => mutate()} />
      ) : (
        <Button variant="subtle" color="gray" c="inherit" size="compact-sm" fw={400} flex="none" visibleFrom="sm"
          loading={isPending} onClick={() => mutate()}>
          Sign out
        </Button>
      )}
      {error && (
        <Affix position={{ bottom: 16, right: 16 }}>
          <Notification color="red" role="alert" withBorder onClose={reset}
            closeButtonProps={{ 'aria-label': 'Close' }}>
            You are still signed in. {error.message}
          </Notification>
        </Affix>
      )}
    </>
  );
}
