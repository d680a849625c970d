// The frame of all pages: where one can go, the colour scheme, whether the service answers.
import {
  ActionIcon, Alert, Anchor, AppShell, Burger, Group, NavLink, Text, useComputedColorScheme, useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { ServiceError } from '../api/client';
import { problemsQuery } from '../api/queries';
import { commandFor } from '../api/session';
import { CopyCommand } from '../parts/CopyCommand';
import { SignOut } from './SignOut';

const PLACES = [
  { to: '/', label: 'Jobs' },
  { to: '/nodes', label: 'Nodes' },
  { to: '/compare', label: 'Compare' },
  { to: '/submit', label: 'Submit' },
];

export function Shell({ children }: { children: ReactNode }) {
  const [open, { toggle, close }] = useDisclosure(false);
  const [place] = useLocation();
  const here = (to: string) => (to === '/' ? place === '/' || place.startsWith('/jobs') : place.startsWith(to));
  const links = PLACES.map(({ to, label }) => (
    <NavLink key={to} component={Link} href={to} label={label} active={here(to)} onClick={close} w="auto" px="sm" />
  ));
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { desktop: true, mobile: !open } }}
      padding="md"
    >
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" gap="md" wrap="nowrap">
          <Burger opened={open} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
          <Anchor component={Link} href="/" fw={700} fz="lg" c="inherit" underline="never">
            tutti
          </Anchor>
          <Group component="nav" aria-label="Pages" gap={4} visibleFrom="sm" wrap="nowrap">
            {links}
          </Group>
          <Contact />
          <Scheme />
          <SignOut />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Menu" hiddenFrom="sm">
        {open && links}
        {open && <SignOut row />}
      </AppShell.Navbar>
      <AppShell.Main id="main">
        <StartedAnew />
        {children}
      </AppShell.Main>
    </AppShell>
  );
}

/** The service has another name since it was started again: this page's is signed out for good. */
function StartedAnew() {
  const { error } = useQuery(problemsQuery);
  if (!isAtOtherName(error)) return null;
  return (
    <Alert role="alert" color="yellow" mb="md" title="The service has started anew, which signs pages out">
      <Group gap="xs">
        <Text size="sm">What was typed here is still here. This opens the page again:</Text>
        <CopyCommand command={commandFor(location)} />
      </Group>
    </Alert>
  );
}

const isAtOtherName = (error: Error | null) => error instanceof ServiceError && error.code === 'other_name';

/** Says that the service is away while it is, and what is broken on its side. */
function Contact() {
  const { data, error } = useQuery(problemsQuery);
  if (error && !isAtOtherName(error)) {
    return (
      <Text role="status" c="light-dark(var(--mantine-color-red-9), var(--mantine-color-red-3))" ml="auto" size="sm" className="one-line">
        {error.message} Trying again.
      </Text>
    );
  }
  const problems = data?.problems ?? [];
  if (problems.length === 0) return <div style={{ marginLeft: 'auto' }} />;
  return (
    <Alert role="status" color="yellow" ml="auto" py={4} px="sm" title={problems.join('\n')} style={{ minWidth: 0 }}>
      <Text size="xs" className="one-line">
        {problems[0]}
      </Text>
    </Alert>
  );
}

function Scheme() {
  const { setColorScheme } = useMantineColorScheme();
  const now = useComputedColorScheme('light');
  const other = now === 'dark' ? 'light' : 'dark';
  return (
    <ActionIcon variant="default" aria-label={`Use the ${other} colours`} onClick={() => setColorScheme(other)}>
      {now === 'dark' ? '☀' : '☾'}
    </ActionIcon>
  );
}
