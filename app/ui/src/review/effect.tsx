// What a label did: "threshold 7.31 → 7.02, false alarms 3, misses 1".
import { count, number, plural } from "../format";
import type { Effect } from "../labelling";
import type { Label } from "../rows";

export function EffectNote({ effect }: { effect: Effect }): preact.JSX.Element {
  const { outcomes } = effect;
  const name = nameOf(effect);
  if (outcomes.every((outcome) => outcome === "expired" || outcome === "unknown")) return <>{name} is too old to be labelled.</>;
  const isLearned = outcomes.some((outcome) => outcome !== "not_learned");
  return (
    <>
      <span class="soft">{name}: {effect.isUndo ? `undone, ${wordOf(effect.label)} again` : wordOf(effect.label)}</span>
      {!isLearned && <span class="moved">taken, but not learned: it lies in a maintenance window</span>}
      {effect.ended.map((incident) => <span key={incident} class="moved">ends incident <b>{count(incident)}</b></span>)}
      <span class="moved">threshold <b class="threshold-moved">{change(number(effect.thresholdBefore), number(effect.thresholdAfter))}</b></span>
      <span class="moved">false alarms <b class="false-alarms">{change(...effect.falseAlarms)}</b></span>
      <span class="moved">misses <b class="misses">{change(...effect.misses)}</b></span>
    </>
  );
}

function nameOf({ subject, outcomes }: Effect): string {
  if (subject.incident === null) return `Sample ${count(subject.seq)}`;
  return `Incident ${count(subject.seq)}, ${plural(outcomes.length, "sample")}`;
}

function wordOf(label: Label): string {
  return label === null ? "no label" : label ? "anomalous" : "normal";
}

function change(before: number | string, after: number | string): string {
  return before === after ? String(after) : `${before} → ${after}`;
}
