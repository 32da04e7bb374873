// Whether an element is in sight, or nearly: what is not need not be drawn.
import { useEffect, useState } from "preact/hooks";

const NEARLY = "200px 0px";

export function useOnScreen(): [(element: HTMLElement | null) => void, boolean] {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [isOn, setOn] = useState(false);
  useEffect(() => {
    if (element === null) return;
    const observer = new IntersectionObserver((seen) => setOn(seen.at(-1)?.isIntersecting ?? false), { rootMargin: NEARLY });
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [setElement, isOn];
}
