// Calls of the service's REST interface (docs/formats/rest.md), typed by its OpenAPI document.
import createClient, { type Middleware } from 'openapi-fetch';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];
export type Job = Schemas['JobWithEvents'];
export type JobSummary = Schemas['JobSummary'];
export type Child = Schemas['Child'];
export type State = Schemas['State'];
export type JobUsage = Schemas['JobUsage'];
export type JobMetrics = Schemas['JobMetrics'];
export type Node = Schemas['Node'];

/** What the service says went wrong. `status` 0: it could not be reached. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** The error of a service that could not be reached. */
export function noAnswer(): ServiceError {
  return new ServiceError(0, 'away', 'The service does not answer.');
}

// The cookie alone lets a page read. What changes something also needs this header, whose value only pages
// of this origin, with its port, can know (docs/decisions/115-signing-in.md).
const WRITE_TOKEN = 'tutti-write-token';

export function keepWriteToken(token: string): void {
  localStorage.setItem(WRITE_TOKEN, token);
}

export function forgetWriteToken(): void {
  localStorage.removeItem(WRITE_TOKEN);
}

export function writeHeader(): Record<string, string> {
  const token = localStorage.getItem(WRITE_TOKEN);
  return token ? { 'X-Tutti-Portal': token } : {};
}

const withWriteToken: Middleware = {
  onRequest({ request }) {
    if (request.method === 'GET' || request.method === 'HEAD') return undefined;
    for (const [name, value] of Object.entries(writeHeader())) request.headers.set(name, value);
    return request;
  },
};

export const service = createClient<paths>({ baseUrl: location.origin });
service.use(withWriteToken);

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** Returns what a call of `service` answers; throws a ServiceError otherwise. */
export async function answer<T>(call: Promise<Answer<T>>): Promise<T> {
  let answered: Answer<T>;
  try {
    answered = await call;
  } catch {
    throw noAnswer();
  }
  if (answered.response.ok) return answered.data as T;
  throw errorOf(answered.response.status, answered.error);
}

export function errorOf(status: number, body: unknown): ServiceError {
  const told = (body as { error?: { code?: string; message?: string } } | undefined)?.error;
  return new ServiceError(status, told?.code ?? 'unknown', told?.message ?? `The service answered ${status}.`);
}
