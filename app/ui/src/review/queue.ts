// The samples that wait for a label: the order stays under the reviewer's eyes while the stream goes on.
import { useEffect, useState } from "preact/hooks";
import type { ReviewSample } from "../answers";
import { useLoaded } from "../hooks";
import { type Problem, get, streamPath } from "../service";

const LIMIT = 50;

export interface Queue {
  waiting: ReviewSample[];
  at: number;
  problem: Problem | null;
  isLoaded: boolean;
  move: (step: number) => number | null;
  /** Take out a sample that has a label now; the one after it comes up. */
  settle: (seq: number) => void;
  /** Put one back that lost its label, in front of all. */
  restore: (seq: number) => void;
}

interface Line {
  waiting: ReviewSample[];
  at: number;
}

export function useQueue(stream: string, version: number): Queue {
  const [line, setLine] = useState<Line>({ waiting: [], at: 0 });
  const [settled] = useState(() => new Map<number, ReviewSample>());
  const { data, problem } = useLoaded(
    async () => (await get<{ samples: ReviewSample[] }>(streamPath(stream, "/review"), { limit: LIMIT })).samples,
    [stream, version],
  );
  useEffect(() => {
    if (data !== null) setLine((before) => merged(before, data.filter(({ seq }) => !settled.has(seq))));
  }, [data]);

  const move = (step: number): number | null => {
    const at = clamped(line.at + step, line.waiting);
    setLine({ ...line, at });
    return line.waiting[at]?.seq ?? null;
  };
  const settle = (seq: number): void =>
    setLine(({ waiting, at }) => {
      const taken = waiting.find((sample) => sample.seq === seq);
      if (taken !== undefined) settled.set(seq, taken);
      const left = waiting.filter((sample) => sample.seq !== seq);
      return { waiting: left, at: clamped(waiting.findIndex((sample) => sample.seq === seq) < at && taken !== undefined ? at - 1 : at, left) };
    });
  const restore = (seq: number): void => {
    const sample = settled.get(seq);
    settled.delete(seq);
    if (sample !== undefined) setLine(({ waiting, at }) => ({ waiting: [...waiting.slice(0, at), sample, ...waiting.slice(at)], at }));
  };
  return { ...line, problem, isLoaded: data !== null, move, settle, restore };
}

/** Keep the order of what was waiting, and append what is new. */
function merged({ waiting, at }: Line, data: ReviewSample[]): Line {
  const newest = new Map(data.map((sample) => [sample.seq, sample]));
  const kept = waiting.filter(({ seq }) => newest.has(seq) || waiting[at]?.seq === seq);
  const known = new Set(kept.map(({ seq }) => seq));
  const all = [...kept.map((sample) => newest.get(sample.seq) ?? sample), ...data.filter(({ seq }) => !known.has(seq))];
  const current = waiting[at]?.seq;
  return { waiting: all, at: Math.max(0, all.findIndex(({ seq }) => seq === current)) };
}

function clamped(at: number, waiting: ReviewSample[]): number {
  return Math.min(Math.max(at, 0), Math.max(waiting.length - 1, 0));
}
