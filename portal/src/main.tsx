import './app/mantine.css';
import './app/app.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queries } from './api/queries';
import { signIn } from './api/session';
import { App } from './app/App';
import { theme } from './app/theme';
import { Boundary } from './parts/Boundary';

const refused = await signIn();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <QueryClientProvider client={queries}>
        <Boundary>
          <App refused={refused} />
        </Boundary>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
