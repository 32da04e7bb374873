// The review queue: flagged and borderline samples one after the other, labelled by key or button.
import { Card, ErrorNote } from "../card";
import { count, moment, number } from "../format";
import type { Effect, Labelling } from "../labelling";
import type { ReviewSample } from "../answers";
import type { Queue } from "./queue";

interface Props {
  queue: Queue;
  labelling: Labelling;
  mayLabel: boolean;
  onLabel: (label: boolean) => void;
  onUndo: () => void;
  onMove: (step: number) => void;
  onSelect: (seq: number) => void;
}

export function ReviewCard({ queue, labelling, mayLabel, onLabel, onUndo, onMove, onSelect }: Props): preact.JSX.Element {
  const { waiting, at } = queue;
  const current = waiting[at];
  const caption = mayLabel
    ? "Flagged and borderline samples. Your labels move the threshold."
    : "Flagged and borderline samples. Your key can look, but not label.";
  return (
    <Card title="Review" caption={caption} tools={waiting.length > 0 && <Moves {...{ at, many: waiting.length, onMove }} />}>
      <ErrorNote problem={queue.problem ?? labelling.problem} />
      {current !== undefined && <Current sample={current} onSelect={onSelect} />}
      {current === undefined && queue.isLoaded && <p class="empty">Nothing waits for review.</p>}
      <div class="verdicts">
        <button type="button" class="verdict anomaly" disabled={!mayLabel || current === undefined} onClick={() => onLabel(true)}>Anomaly <kbd>a</kbd></button>
        <button type="button" class="verdict normal" disabled={!mayLabel || current === undefined} onClick={() => onLabel(false)}>Normal <kbd>n</kbd></button>
        <button type="button" disabled={!mayLabel || labelling.given.length === 0} onClick={onUndo}>Undo <kbd>u</kbd></button>
      </div>
      <p class="effect" role="status">{labelling.effect !== null && <Told effect={labelling.effect} />}</p>
    </Card>
  );
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

function Current({ sample, onSelect }: { sample: ReviewSample; onSelect: (seq: number) => void }): preact.JSX.Element {
  const side = sample.is_anomaly ? "flagged" : "borderline";
  return (
    <div class="current">
      <p>
        <span class={`tag ${side}`}>{side}</span> <button type="button" class="link" onClick={() => onSelect(sample.seq)}>sample {count(sample.seq)}</button>
        {sample.id !== null && <span class="id"> {sample.id}</span>}
      </p>
      <p class="figures">score <b>{number(sample.score)}</b> threshold <b>{number(sample.threshold)}</b></p>
      {sample.time !== null && <p class="soft">{moment(sample.time)}</p>}
    </div>
  );
}

/** What a label did: "threshold 7.31 → 7.02, false alarms 3, misses 1". */
function Told({ effect }: { effect: Effect }): preact.JSX.Element {
  const label = effect.label === null ? "no label" : effect.label ? "anomalous" : "normal";
  const was = effect.isUndo ? `undone, ${effect.label === null ? "no label again" : `${label} again`}` : label;
  if (effect.outcome === "expired" || effect.outcome === "unknown") {
    return <>Sample {count(effect.seq)} is too old to be labelled.</>;
  }
  return (
    <>
      <span class="soft">Sample {count(effect.seq)}: {was}</span>
      {effect.ended.map((incident) => <span key={incident} class="moved">ends incident <b>{count(incident)}</b></span>)}
      <span class="moved">threshold <b class="threshold-moved">{change(number(effect.thresholdBefore), number(effect.thresholdAfter))}</b></span>
      <span class="moved">false alarms <b class="false-alarms">{change(...effect.falseAlarms)}</b></span>
      <span class="moved">misses <b class="misses">{change(...effect.misses)}</b></span>
    </>
  );
}

function change(before: number | string, after: number | string): string {
  return before === after ? String(after) : `${before} → ${after}`;
}
