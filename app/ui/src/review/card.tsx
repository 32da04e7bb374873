// The review queue: incidents and close calls one after the other, labelled by key or button.
import { Card, ErrorNote } from "../card";
import { plural } from "../format";
import { type Problem, UNREACHABLE } from "../service";
import { EffectNote } from "./effect";
import { Samples, UnderReview } from "./item";
import type { Queue } from "./queue";
import type { Review } from "./review";

interface Props {
  stream: string;
  review: Review;
  mayLabel: boolean;
  onSelect: (seq: number) => void;
}

export function ReviewCard({ stream, review, mayLabel, onSelect }: Props): preact.JSX.Element {
  const { queue, labelling, judge, undo, move } = review;
  const { waiting, at } = queue;
  const current = waiting[at];
  return (
    <Card title="Review" caption={captionOf(queue, mayLabel)} tools={waiting.length > 0 && <Moves {...{ at, many: waiting.length, onMove: move }} />}>
      <ErrorNote problem={queue.problem} />
      {labelling.problem !== null && <p class="problem" role="alert">{refused(labelling.problem)}</p>}
      {current !== undefined && <UnderReview item={current} onSelect={onSelect} />}
      {current === undefined && queue.isLoaded && <p class="empty">Nothing waits for review.</p>}
      <div class="verdicts">
        <button type="button" class="verdict anomaly" disabled={!mayLabel || current === undefined} onClick={() => judge(true)}>Anomaly <kbd>a</kbd></button>
        <button type="button" class="verdict normal" disabled={!mayLabel || current === undefined} onClick={() => judge(false)}>Normal <kbd>n</kbd></button>
        <button type="button" disabled={!mayLabel || labelling.given.length === 0} onClick={undo}>Undo <kbd>u</kbd></button>
      </div>
      {current?.incident && <Samples key={current.key} {...{ stream, onSelect }} incident={current.incident} />}
      <p class="effect" role="status">{labelling.effect !== null && <EffectNote effect={labelling.effect} />}</p>
    </Card>
  );
}

/** Stands until the next step of the reviewer, when the service may long be back. */
function refused({ code, message }: Problem): string {
  return `The label was not taken. ${code === UNREACHABLE ? "The service did not answer: label again." : message}`;
}

function captionOf({ waiting, toReview }: Queue, mayLabel: boolean): string {
  const closeCalls = waiting.filter(({ closeCall }) => closeCall !== null).length;
  const waits = `${plural(toReview, "incident")} to review${closeCalls > 0 ? `, and ${plural(closeCalls, "close call")}` : ""}.`;
  return `${waits} ${mayLabel ? "Your labels move the threshold." : "Your key can look, but not label."}`;
}

function Moves({ at, many, onMove }: { at: number; many: number; onMove: (step: number) => void }): preact.JSX.Element {
  return (
    <div class="buttons">
      <button type="button" class="icon" aria-label="Previous" title="Previous (k)" disabled={at === 0} onClick={() => onMove(-1)}>‹</button>
      <span class="place">{at + 1} of {many}</span>
      <button type="button" class="icon" aria-label="Next" title="Next (j)" disabled={at + 1 >= many} onClick={() => onMove(1)}>›</button>
    </div>
  );
}
