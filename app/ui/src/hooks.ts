// What several parts of the page need of Preact.
import { useEffect, useRef, useState } from "preact/hooks";
import { isOutage, report } from "./connection";
import { Problem } from "./service";

export const RETRY_MS = 3000;

export interface Loaded<T> {
  data: T | null;
  /** Why this was refused; an outage is told once for the whole page. */
  problem: Problem | null;
}

/** Load whenever a key changes, and again after an outage; what was there stays until the new has come. */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ data: null, problem: null });
  const part = useRef({});
  useEffect(() => {
    let isCurrent = true;
    let retry: number | undefined;
    const fail = (problem: Problem): void => {
      report(part.current, problem);
      if (isOutage(problem)) retry = window.setTimeout(attempt, RETRY_MS);
      setLoaded(({ data }) => ({ data, problem: isOutage(problem) ? null : problem }));
    };
    const attempt = (): void => {
      load().then(
        (data) => isCurrent && (report(part.current, null), setLoaded({ data, problem: null })),
        (error: unknown) => isCurrent && fail(problemOf(error)),
      );
    };
    attempt();
    return () => {
      isCurrent = false;
      window.clearTimeout(retry);
    };
  }, keys);
  useEffect(() => () => report(part.current, null), []);
  return loaded;
}

export function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "page", String(error));
}

/** The width of an element, as it changes. */
export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [setElement, width];
}

/** The newest value of something, for callbacks that outlive a render. */
export function useNewest<T>(value: T): { readonly current: T } {
  const newest = useRef(value);
  newest.current = value;
  return newest;
}
