// Giving labels and taking them back, and what each did to the threshold and the counts.
import { useState } from "preact/hooks";
import type { Costs, FeedbackAnswer } from "./answers";
import { problemOf } from "./hooks";
import type { Label } from "./rows";
import { type Problem, post } from "./service";

export interface Given {
  seq: number;
  label: Label;
  before: Label;
}

export interface Effect extends Given {
  isUndo: boolean;
  outcome: string;
  thresholdBefore: number | null;
  thresholdAfter: number | null;
  falseAlarms: [number, number];
  misses: [number, number];
}

export interface Labelling {
  effect: Effect | null;
  given: Given[];
  isBusy: boolean;
  problem: Problem | null;
  give: (seq: number, label: Label, before: Label) => Promise<boolean>;
  undo: () => Promise<Given | null>;
}

/** costs: how the stream's decisions stood before the first label given here. */
export function useLabelling(stream: string, costs: Costs | undefined, onChange: (seq: number, label: Label) => void): Labelling {
  const [given, setGiven] = useState<Given[]>([]);
  const [effect, setEffect] = useState<Effect | null>(null);
  const [counts, setCounts] = useState<Costs | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);

  const send = async (change: Given, isUndo: boolean): Promise<boolean> => {
    setBusy(true);
    try {
      const answer = await post<FeedbackAnswer>("feedback", { stream }, { labels: [{ seq: change.seq, anomaly: change.label }] });
      setEffect(effectOf(change, isUndo, answer, counts ?? costs ?? answer));
      setCounts(answer);
      setProblem(null);
      onChange(change.seq, change.label);
      return true;
    } catch (error) {
      setProblem(problemOf(error));
      return false;
    } finally {
      setBusy(false);
    }
  };

  const give = async (seq: number, label: Label, before: Label): Promise<boolean> => {
    if (isBusy) return false;
    const change = { seq, label, before };
    const isDone = await send(change, false);
    if (isDone) setGiven((all) => [...all, change]);
    return isDone;
  };

  const undo = async (): Promise<Given | null> => {
    const last = given.at(-1);
    if (last === undefined || isBusy) return null;
    if (!(await send({ seq: last.seq, label: last.before, before: last.label }, true))) return null;
    setGiven((all) => all.slice(0, -1));
    return last;
  };

  return { effect, given, isBusy, problem, give, undo };
}

function effectOf(change: Given, isUndo: boolean, answer: FeedbackAnswer, before: Costs): Effect {
  return {
    ...change,
    isUndo,
    outcome: answer.outcome[0] ?? "",
    thresholdBefore: answer.threshold_before,
    thresholdAfter: answer.threshold_after,
    falseAlarms: [before.false_alarms, answer.false_alarms],
    misses: [before.misses, answer.misses],
  };
}
