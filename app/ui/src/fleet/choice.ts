// What of the streams is shown, as the address says it.
import { useEffect, useState } from "preact/hooks";

export const ORDERS = {
  name: "Name",
  flagged: "Flagged lately",
  incidents: "Open incidents",
  review: "To review",
  silent: "Longest silent",
  warming_up: "Warming up",
} as const;

export type Order = keyof typeof ORDERS;

export interface Choice {
  prefix: string;
  search: string;
  order: Order;
}

const EVERYTHING: Choice = { prefix: "", search: "", order: "name" };

/** The address of the list with a choice. */
export function addressOf(choice: Choice): string {
  const said = Object.entries(choice).filter(([name, value]) => value !== EVERYTHING[name as keyof Choice]);
  return said.length === 0 ? "#/" : `#/?${new URLSearchParams(said).toString()}`;
}

function choiceIn(hash: string): Choice {
  const query = new URLSearchParams(/^#\/\?(.*)$/.exec(hash)?.[1]);
  const order = query.get("order") ?? "name";
  return { prefix: query.get("prefix") ?? "", search: query.get("search") ?? "", order: order in ORDERS ? (order as Order) : "name" };
}

/** The choice, and how to change it: the address follows, so that the way back leads here again. */
export function useChoice(): [Choice, (changed: Partial<Choice>) => void] {
  const [choice, setChoice] = useState(() => choiceIn(location.hash));
  useEffect(() => {
    const follow = (): void => setChoice(choiceIn(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const change = (changed: Partial<Choice>): void => {
    const next = { ...choice, ...changed };
    history.replaceState(null, "", addressOf(next));
    setChoice(next);
  };
  return [choice, change];
}

/** The parts of a prefix, each with the prefix up to its end. */
export function partsOf(prefix: string): { part: string; upTo: string }[] {
  const ends = [...prefix.matchAll(/[._:-]+|$/g)].map(({ index, 0: text }) => index + text.length);
  const cuts = [...new Set([0, ...ends])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, place) => ({ part: prefix.slice(cuts[place], end), upTo: prefix.slice(0, end) }));
}
