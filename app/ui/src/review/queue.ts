// What waits for a label: incidents, then close calls. The order stays the same for the reviewer while the stream goes on.
import { useEffect, useState } from "preact/hooks";
import type { Incident, ReviewSample } from "../answers";
import { useLoaded } from "../hooks";
import { type Said, type Subject, keyOf } from "../labelling";
import { type Problem, get, streamPath } from "../service";

const LIMIT = 50;

/** What one label is for; sample: what is shown of it, of an incident its peak. */
export interface Item {
  key: string;
  subject: Subject;
  sample: number;
  incident: Incident | null;
  closeCall: ReviewSample | null;
}

export interface Queue {
  waiting: Item[];
  at: number;
  /** Incidents without a label. */
  toReview: number;
  problem: Problem | null;
  isLoaded: boolean;
  /** Go on or back, and give what is under review then. */
  move: (step: number) => Item | undefined;
  /** Go to what a key names. */
  turnTo: (key: string) => void;
  /** Find what a key names, also if it waits no longer. */
  find: (key: string) => Item | undefined;
}

interface Answer {
  incidents: Incident[];
  to_review: number;
  samples: ReviewSample[];
}

interface Line {
  items: Item[];
  current: string | null;
}

/** said: what was said here or elsewhere since the page was opened; that waits no longer, until it is undone. */
export function useQueue(stream: string, version: number, said: Said): Queue {
  const [line, setLine] = useState<Line>({ items: [], current: null });
  const { data, problem } = useLoaded(() => get<Answer>(streamPath(stream, "/review"), { limit: LIMIT }), [stream, version]);
  useEffect(() => {
    if (data !== null) setLine((before) => merged(before, itemsOf(data), said));
  }, [data]);

  const waiting = line.items.filter(({ key }) => isOpen(key, said));
  const at = placeIn(waiting, line);
  const move = (step: number): Item | undefined => {
    const item = waiting[clamped(at + step, waiting)];
    setLine({ ...line, current: item?.key ?? null });
    return item;
  };
  return {
    waiting,
    at,
    toReview: data === null ? 0 : data.to_review - data.incidents.filter(({ id }) => !isOpen(id, said)).length,
    problem,
    isLoaded: data !== null,
    move,
    turnTo: (key) => setLine((before) => ({ ...before, current: key })),
    find: (key) => line.items.find((item) => item.key === key),
  };
}

function itemsOf({ incidents, samples }: Answer): Item[] {
  return [
    ...incidents.map((incident) => itemOf({ incident: incident.id, seq: incident.incident }, incident.peak_seq, incident, null)),
    ...samples.map((sample) => itemOf({ incident: null, seq: sample.seq }, sample.seq, null, sample)),
  ];
}

function itemOf(subject: Subject, sample: number, incident: Incident | null, closeCall: ReviewSample | null): Item {
  return { key: keyOf(subject), subject, sample, incident, closeCall };
}

function isOpen(key: string, said: Said): boolean {
  return (said.get(key) ?? null) === null;
}

/** Where the current item stands among those that wait; if it no longer does, the one after it. */
function placeIn(waiting: Item[], { items, current }: Line): number {
  const from = Math.max(0, items.findIndex(({ key }) => key === current));
  const rest = new Set(items.slice(from).map(({ key }) => key));
  const at = waiting.findIndex(({ key }) => rest.has(key));
  return at < 0 ? clamped(waiting.length - 1, waiting) : at;
}

/** Keep the order of what is known, with its newest figures, and append what is new; what has a label may yet be undone. */
function merged({ items, current }: Line, data: Item[], said: Said): Line {
  const newest = new Map(data.map((item) => [item.key, item]));
  const isKept = ({ key, closeCall }: Item): boolean => newest.has(key) || !isOpen(key, said) || (closeCall !== null && key === current);
  const kept = items.filter(isKept).map((item) => newest.get(item.key) ?? item);
  const known = new Set(kept.map(({ key }) => key));
  const all = [...kept, ...data.filter(({ key }) => !known.has(key))];
  return { items: all, current: current ?? all[0]?.key ?? null };
}

function clamped(at: number, waiting: Item[]): number {
  return Math.min(Math.max(at, 0), Math.max(waiting.length - 1, 0));
}
