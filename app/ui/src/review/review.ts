// The work of a reviewer: what is under review, the labels given, and how one goes on.
import { useEffect } from "preact/hooks";
import { type Labelling, keyOf, useLabelling } from "../labelling";
import type { StreamState } from "../stream-state";
import { type Item, type Queue, useQueue } from "./queue";

export interface Review {
  queue: Queue;
  labelling: Labelling;
  /** Label what is under review. */
  judge: (label: boolean) => void;
  undo: () => void;
  move: (step: number) => void;
  turnTo: (item: Item) => void;
}

interface Looking {
  mayLabel: boolean;
  /** The sample, or the first one of the incident, that the address names. */
  named: number | null;
  /** Whether something is looked at already. */
  isLooking: boolean;
  /** Open a sample with its values, and bring it into view. */
  look: (seq: number | null) => void;
  /** Open a sample; the charts stay where they are. */
  open: (seq: number) => void;
  onLabelled: () => void;
}

export function useReview(stream: string, state: StreamState, { mayLabel, named, isLooking, look, open, onLabelled }: Looking): Review {
  const labelling = useLabelling(stream, state.description?.costs, state.labels, {
    onChange: ({ subject, label }, isUndo) => {
      state.labelled(subject.incident === null ? subject.seq : null, label);
      onLabelled();
      if (isUndo) goBack(keyOf(subject), subject.seq);
    },
    onFailure: ({ subject }) => goBack(keyOf(subject), subject.seq),
  });
  const queue = useQueue(stream, state.version, labelling.said);
  const goBack = (key: string, seq: number): void => {
    queue.turnTo(key);
    look(queue.find(key)?.sample ?? seq);
  };
  const first = queue.waiting[queue.at]?.sample ?? null;
  useEffect(() => {
    if (first !== null && !isLooking) open(first);
  }, [queue.isLoaded, first === null]);
  useEffect(() => {
    const item = queue.waiting.find(({ subject }) => subject.seq === named);
    if (item !== undefined) queue.turnTo(item.key);
  }, [first === null]);

  return {
    queue,
    labelling,
    // show the next item at once, so that a key pressed before the answer comes is for what was seen
    judge: (label) => {
      const current = queue.waiting[queue.at];
      if (!mayLabel || current === undefined) return;
      const following = queue.waiting[queue.at + 1] ?? queue.waiting[queue.at - 1];
      labelling.give(current.subject, label, null);
      look(following?.sample ?? null);
    },
    undo: () => {
      if (mayLabel) labelling.undo();
    },
    move: (step) => {
      labelling.dismiss();
      look(queue.move(step)?.sample ?? null);
    },
    turnTo: (item) => goBack(item.key, item.sample),
  };
}
