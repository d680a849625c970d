import { Affix, Button, Menu, NavLink, Notification } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { signOut } from '../api/session';

const WAYS = [
  { everywhere: false, label: 'Sign out' },
  { everywhere: true, label: 'Sign out everywhere' },
];

/** `row`: these are rows of the menu that a narrow page has. */
export function SignOut({ row }: { row?: boolean }) {
  const { mutate, error, isPending, reset } = useMutation({ mutationFn: signOut });
  return (
    <>
      {row &&
        WAYS.map(({ everywhere, label }) => (
          <NavLink key={label} component="button" label={label} px="sm" disabled={isPending} onClick={() => mutate(everywhere)} />
        ))}
      {!row && (
        <Menu position="bottom-end">
          <Menu.Target>
            <Button variant="subtle" color="gray" c="inherit" size="compact-sm" fw={400} flex="none" visibleFrom="sm"
              loading={isPending}>
              Sign out
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {WAYS.map(({ everywhere, label }) => (
              <Menu.Item key={label} onClick={() => mutate(everywhere)}>
                {everywhere ? 'All browsers' : 'This browser'}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
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
