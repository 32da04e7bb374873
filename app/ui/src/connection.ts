// The state of the connection, in one place: which parts of the page have no answer now, and why.
import { useEffect, useState } from "preact/hooks";
import { type Problem, UNREACHABLE } from "./service";

const failing = new Map<object, Problem>();
const listeners = new Set<() => void>();

/** The service, or something on the way to it, has failed: it may answer later. */
export function isOutage({ status, code }: Problem): boolean {
  return code === UNREACHABLE || status >= 500;
}

/** Say how a part of the page fares: it waits for an answer because of a problem, or it has one. */
export function report(part: object, problem: Problem | null): void {
  if (problem !== null && isOutage(problem)) failing.set(part, problem);
  else if (!failing.delete(part)) return;
  for (const tell of listeners) tell();
}

/** What keeps parts of the page from their answers, each said once. */
export function useOutages(): string[] {
  const [outages, setOutages] = useState<string[]>([]);
  useEffect(() => {
    const tell = (): void => setOutages([...new Set([...failing.values()].map(({ message }) => message))]);
    listeners.add(tell);
    tell();
    return () => void listeners.delete(tell);
  }, []);
  return outages;
}
