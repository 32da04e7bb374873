// What several parts of the page need of Preact.
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./service";

export interface Loaded<T> {
  data: T | null;
  problem: Problem | null;
}

/** Load whenever a key changes; what was there stays until the new has come, and a late answer to an old key is dropped. */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ data: null, problem: null });
  useEffect(() => {
    let isCurrent = true;
    load().then(
      (data) => isCurrent && setLoaded({ data, problem: null }),
      (error: unknown) => isCurrent && setLoaded((before) => ({ data: before.data, problem: problemOf(error) })),
    );
    return () => {
      isCurrent = false;
    };
  }, keys);
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
