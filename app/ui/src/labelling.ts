// Gives labels and takes them back; keeps what each did to the threshold and the counts.
import { useRef, useState } from "preact/hooks";
import type { Costs, FeedbackAnswer } from "./answers";
import { problemOf } from "./hooks";
import type { Label, Labels } from "./rows";
import { type Problem, post } from "./service";

/** What a label is for: the flagged samples of an incident, by its id and its first sample, or one sample. */
export interface Subject {
  incident: string | null;
  seq: number;
}

/** What was said, by the keys of subjects. */
export type Said = ReadonlyMap<string, Label>;

export function keyOf({ incident, seq }: Subject): string {
  return incident ?? String(seq);
}

export interface Given {
  subject: Subject;
  label: Label;
  before: Label;
}

export interface Effect extends Given {
  isUndo: boolean;
  /** What became of the labels, one for each sample. */
  outcomes: string[];
  ended: number[];
  thresholdBefore: number | null;
  thresholdAfter: number | null;
  falseAlarms: [number, number];
  misses: [number, number];
}

export interface Labelling {
  effect: Effect | null;
  given: Given[];
  problem: Problem | null;
  /** What was said, known to the service or on its way there. */
  said: Said;
  give: (subject: Subject, label: Label, before: Label) => void;
  undo: () => void;
  /** Say no more of a label that was not taken. */
  dismiss: () => void;
}

/** A label to give, or null: the last one to take back. */
type Turn = Given | null;

interface Told {
  /** A label was given, or taken back. */
  onChange: (change: Given, isUndo: boolean) => void;
  /** A label was not taken; none that waited behind it is sent. */
  onFailure: (change: Given) => void;
}

/** Labels go out one after the other; costs: how the stream's decisions stood before the first label given here. */
export function useLabelling(stream: string, costs: Costs | undefined, labels: Labels, { onChange, onFailure }: Told): Labelling {
  const turns = useRef<Turn[]>([]);
  const given = useRef<Given[]>([]);
  const counts = useRef<Costs | null>(null);
  const [pending, setPending] = useState<Turn[]>([]);
  const [effect, setEffect] = useState<Effect | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  const send = async (change: Given, isUndo: boolean): Promise<boolean> => {
    try {
      const answer = await request(stream, change);
      setEffect(effectOf(change, isUndo, answer, counts.current ?? costs ?? answer));
      counts.current = answer;
      given.current = isUndo ? given.current.slice(0, -1) : [...given.current, change];
      setProblem(null);
      onChange(change, isUndo);
      return true;
    } catch (error) {
      setProblem(problemOf(error));
      if (!isUndo) onFailure(change);
      return false;
    }
  };

  const takeBack = async (): Promise<boolean> => {
    const last = given.current.at(-1);
    return last === undefined || send({ subject: last.subject, label: last.before, before: last.label }, true);
  };

  const takeTurns = async (): Promise<void> => {
    for (let turn = turns.current[0]; turn !== undefined; turn = turns.current[0]) {
      const isDone = await (turn === null ? takeBack() : send(turn, false));
      turns.current = isDone ? turns.current.slice(1) : [];
      setPending(turns.current);
    }
  };

  const wait = (turn: Turn): void => {
    turns.current = [...turns.current, turn];
    setPending(turns.current);
    setProblem(null);
    if (turns.current.length === 1) void takeTurns();
  };

  return {
    effect,
    given: given.current,
    problem,
    said: saidOf(labels, given.current, pending),
    give: (subject, label, before) => wait({ subject, label, before }),
    undo: () => wait(null),
    dismiss: () => setProblem(null),
  };
}

function request(stream: string, { subject, label }: Given): Promise<FeedbackAnswer> {
  if (subject.incident !== null) {
    return post(`incidents/${encodeURIComponent(subject.incident)}/label`, {}, { anomaly: label, only: "flagged" });
  }
  return post("feedback", { stream }, { labels: [{ seq: subject.seq, anomaly: label }] });
}

/** Labels of samples are told by the service, those of incidents only here. */
function saidOf(labels: Labels, given: Given[], pending: Turn[]): Said {
  const ofIncidents = given.filter(({ subject }) => subject.incident !== null);
  const changes = [...ofIncidents, ...pending.filter((turn) => turn !== null)];
  return new Map([
    ...[...labels].map(([seq, label]) => [String(seq), label] as const),
    ...changes.map(({ subject, label }) => [keyOf(subject), label] as const),
  ]);
}

function effectOf(change: Given, isUndo: boolean, answer: FeedbackAnswer, before: Costs): Effect {
  return {
    ...change,
    isUndo,
    outcomes: answer.outcome,
    ended: answer.accepted,
    thresholdBefore: answer.threshold_before,
    thresholdAfter: answer.threshold_after,
    falseAlarms: [before.false_alarms, answer.false_alarms],
    misses: [before.misses, answer.misses],
  };
}
