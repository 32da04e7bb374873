// Requests to the service that the page came from.
import type { Session } from "./answers";

/** The code of a problem that no answer came. */
export const UNREACHABLE = "unreachable";

/** An answer that refuses, as problem+json tells it; or none, then the status is 0. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }
}

export type Query = Record<string, string | number | boolean | undefined>;

// every change made with the session's cookie must send it
let csrf: string | null = null;
let onSignedOut = (): void => {};

/** Say what to do when the service no longer knows the session. */
export function whenSignedOut(act: () => void): void {
  onSignedOut = act;
}

export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

export function streamPath(stream: string, rest = ""): string {
  return `streams/${encodeURIComponent(stream)}${rest}`;
}

/** The page of a stream; with an incident, at the sample that opened it. */
export function streamAddress(stream: string, incident: number | null = null): string {
  return `#/streams/${encodeURIComponent(stream)}${incident === null ? "" : `?incident=${incident}`}`;
}

export function get<T>(path: string, query: Query = {}): Promise<T> {
  return ask<T>("GET", address(path, query));
}

export function post<T>(path: string, query: Query, body: unknown): Promise<T> {
  return ask<T>("POST", address(path, query), body);
}

export async function readSession(): Promise<Session> {
  return keep(await get<Session>("session"));
}

export async function signIn(key: string): Promise<Session> {
  return keep(await ask<Session>("POST", "session", { key }));
}

export async function signOut(): Promise<void> {
  await ask("DELETE", "session");
  csrf = null;
}

function keep(session: Session): Session {
  csrf = session.csrf;
  return session;
}

async function ask<T>(method: string, url: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (csrf !== null && method !== "GET") headers["x-csrf-token"] = csrf;
  const answer = await reach(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) throw await refusal(answer, url);
  return answer.status === 204 ? (undefined as T) : ((await answer.json()) as T);
}

async function reach(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...request, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw unreachable();
  }
}

/** No answer came. */
export function unreachable(): Problem {
  return new Problem(0, UNREACHABLE, "The service does not answer.");
}

async function refusal(answer: Response, url: string): Promise<Problem> {
  const said = (await answer.json().catch(() => ({}))) as { detail?: string; title?: string; code?: string };
  const isForgotten = answer.status === 401 || said.code === "csrf_token_needed";
  if (isForgotten && url !== "session") onSignedOut();
  return new Problem(answer.status, said.code ?? "", said.detail ?? said.title ?? `The service answered ${answer.status}.`);
}
