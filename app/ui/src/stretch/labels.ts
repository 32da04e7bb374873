// One label for the samples of a stretch: how many there are, the label, and the way back.
import { useEffect, useState } from "preact/hooks";
import type { FeedbackAnswer } from "../answers";
import { type Loaded, problemOf, useLoaded } from "../hooks";
import type { Label, Row } from "../rows";
import { type Problem, post } from "../service";
import type { Stretch } from "../timeline/brush";
import { type View, useSettled } from "../timeline/view";

export type Only = "flagged" | "all";

export interface Wanted {
  stretch: Stretch;
  only: Only;
}

interface SeqLabel {
  seq: number;
  anomaly: Label;
}

/** What a label did to the samples of a stretch. */
export interface Given {
  label: Label;
  answer: FeedbackAnswer;
  /** What takes it back. */
  before: SeqLabel[];
}

export interface StretchLabels {
  /** How many samples a label would be for; null while nobody knows. */
  found: number | null;
  given: Given | null;
  problem: Problem | null;
  give: (label: boolean) => Promise<void>;
  undo: () => Promise<void>;
}

export function useStretchLabels(stream: string, view: View, wanted: Wanted): StretchLabels {
  const [given, setGiven] = useState<Given | null>(null);
  const [refused, setRefused] = useState<Problem | null>(null);
  useEffect(() => setGiven(null), [wanted.stretch.from, wanted.stretch.to, wanted.only]);
  const counted = useCount(stream, view, wanted);

  const attempt = async (work: () => Promise<Given | null>): Promise<void> => {
    try {
      setGiven(await work());
      setRefused(null);
    } catch (error) {
      setRefused(problemOf(error));
    }
  };
  return {
    found: counted.data,
    given,
    problem: refused ?? counted.problem,
    give: (label) =>
      attempt(async () => {
        const answer = await post<FeedbackAnswer>("feedback", { stream }, bodyOf(view, wanted, label));
        return { label, answer, before: before(answer, view.rows) };
      }),
    undo: () =>
      attempt(async () => {
        if (given !== null && given.before.length > 0) await post("feedback", { stream }, { labels: given.before });
        return null;
      }),
  };
}

/** How many samples a label would be for, once the stretch has stood still for a moment. */
function useCount(stream: string, view: View, wanted: Wanted): Loaded<number | null> {
  const key = `${wanted.stretch.from} ${wanted.stretch.to} ${wanted.only}`;
  const settled = useSettled(key);
  const { data, problem } = useLoaded(async () => ({ key: settled, found: await count(stream, view, wanted) }), [stream, settled]);
  return { data: data?.key === key ? data.found : null, problem };
}

async function count(stream: string, view: View, wanted: Wanted): Promise<number> {
  const body = bodyOf(view, wanted, true);
  if ("labels" in body && body.labels.length === 0) return 0;
  const { outcome } = await post<FeedbackAnswer>("feedback", { stream, dry_run: true }, body);
  return outcome.filter((one) => !["expired", "unknown", "not_learned"].includes(one)).length;
}

type Body = { labels: SeqLabel[] } | { ranges: { from: number; to: number; anomaly: Label; only: Only }[] };

/** By time along a clock, and else by the numbers of the samples, which may all have one time. */
function bodyOf({ axis, rows }: View, { stretch: { from, to }, only }: Wanted, anomaly: Label): Body {
  if (axis.byClock) return { ranges: [{ from, to, anomaly, only }] };
  const [first, last] = [Math.max(1, Math.ceil(from)), Math.floor(to)];
  const all = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  const flagged = rows.filter((row) => row.isAnomaly && row.seq >= first && row.seq <= last).map(({ seq }) => seq);
  return { labels: (only === "all" ? all : flagged).map((seq) => ({ seq, anomaly })) };
}

/** The labels that samples had; those of flagged and of labelled samples are always among the rows. */
function before({ seq: seqs, outcome }: FeedbackAnswer, rows: Row[]): SeqLabel[] {
  const labels = new Map(rows.map(({ seq, label }) => [seq, label]));
  return seqs.flatMap((seq, i) => {
    const isChanged = outcome[i] === "applied" || outcome[i] === "revised";
    return isChanged && seq !== null ? [{ seq, anomaly: labels.get(seq) ?? null }] : [];
  });
}
