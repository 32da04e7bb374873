// The samples that wait for a label: their order stays the same for the reviewer while the stream goes on.
import { useEffect, useState } from "preact/hooks";
import type { ReviewSample } from "../answers";
import { useLoaded } from "../hooks";
import type { Labels } from "../rows";
import { type Problem, get, streamPath } from "../service";

const LIMIT = 50;

export interface Queue {
  waiting: ReviewSample[];
  at: number;
  problem: Problem | null;
  isLoaded: boolean;
  /** Go on or back, and give the sample that is under review then. */
  move: (step: number) => number | null;
  /** Go to a sample. */
  turnTo: (seq: number) => void;
}

interface Line {
  samples: ReviewSample[];
  current: number | null;
}

/** labels: what was said here or elsewhere since the page was opened; such a sample waits no longer, until it is undone. */
export function useQueue(stream: string, version: number, labels: Labels): Queue {
  const [line, setLine] = useState<Line>({ samples: [], current: null });
  const { data, problem } = useLoaded(
    async () => (await get<{ samples: ReviewSample[] }>(streamPath(stream, "/review"), { limit: LIMIT })).samples,
    [stream, version],
  );
  useEffect(() => {
    if (data !== null) setLine((before) => merged(before, data, labels));
  }, [data]);

  const waiting = line.samples.filter(({ seq }) => isOpen(seq, labels));
  const at = placeIn(waiting, line);
  const move = (step: number): number | null => {
    const current = waiting[clamped(at + step, waiting)]?.seq ?? null;
    setLine({ ...line, current });
    return current;
  };
  const turnTo = (seq: number): void => setLine((before) => ({ ...before, current: seq }));
  return { waiting, at, problem, isLoaded: data !== null, move, turnTo };
}

function isOpen(seq: number, labels: Labels): boolean {
  return (labels.get(seq) ?? null) === null;
}

/** Where the current sample stands among those that wait; if it no longer does, the one after it. */
function placeIn(waiting: ReviewSample[], { samples, current }: Line): number {
  const from = Math.max(0, samples.findIndex(({ seq }) => seq === current));
  const rest = new Set(samples.slice(from).map(({ seq }) => seq));
  const at = waiting.findIndex(({ seq }) => rest.has(seq));
  return at < 0 ? clamped(waiting.length - 1, waiting) : at;
}

/** Keep the order of what is known, and append what is new; what has a label may yet be undone. */
function merged({ samples, current }: Line, data: ReviewSample[], labels: Labels): Line {
  const newest = new Set(data.map(({ seq }) => seq));
  const kept = samples.filter(({ seq }) => newest.has(seq) || seq === current || !isOpen(seq, labels));
  const known = new Set(kept.map(({ seq }) => seq));
  const all = [...kept, ...data.filter(({ seq }) => !known.has(seq))];
  return { samples: all, current: current ?? all[0]?.seq ?? null };
}

function clamped(at: number, waiting: ReviewSample[]): number {
  return Math.min(Math.max(at, 0), Math.max(waiting.length - 1, 0));
}
