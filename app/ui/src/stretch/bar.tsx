// What is marked on the charts, and the label for it.
import { useState } from "preact/hooks";
import { ErrorNote } from "../card";
import { count, moment, number, plural } from "../format";
import type { Stretch } from "../timeline/brush";
import type { View } from "../timeline/view";
import { type Given, type Only, type StretchLabels, useStretchLabels } from "./labels";

interface Props {
  stream: string;
  view: View;
  stretch: Stretch;
}

const CHOICES: [Only, string][] = [
  ["flagged", "only the flagged samples"],
  ["all", "all samples"],
];

export function StretchBar({ stream, view, stretch }: Props): preact.JSX.Element {
  const [only, setOnly] = useState<Only>("flagged");
  const labels = useStretchLabels(stream, view, { stretch, only });
  return (
    <section class="stretch" aria-label="Label a stretch">
      <p><b>{placeOf(view, stretch)}</b></p>
      <ErrorNote problem={labels.problem} />
      {labels.given === null ? <Question {...{ labels, only, setOnly }} onCancel={view.brush.clear} /> : <Done labels={labels} given={labels.given} onClose={view.brush.clear} />}
    </section>
  );
}

interface QuestionProps {
  labels: StretchLabels;
  only: Only;
  setOnly: (only: Only) => void;
  onCancel: () => void;
}

function Question({ labels: { found, give }, only, setOnly, onCancel }: QuestionProps): preact.JSX.Element {
  const isEmpty = found === null || found === 0;
  return (
    <>
      <fieldset>
        <legend class="hidden">Which samples</legend>
        {CHOICES.map(([value, text]) => (
          <label key={value}><input type="radio" name="only" value={value} checked={only === value} onChange={() => setOnly(value)} /> {text}</label>
        ))}
      </fieldset>
      <p class="found" role="status">{found === null ? "Counting …" : `${plural(found, "sample")} would be labelled.`}</p>
      <div class="buttons">
        <button type="button" class="verdict anomaly" disabled={isEmpty} onClick={() => void give(true)}>Label as anomaly</button>
        <button type="button" class="verdict normal" disabled={isEmpty} onClick={() => void give(false)}>Label as normal</button>
        <button type="button" onClick={onCancel}>Cancel</button>
      </div>
    </>
  );
}

function Done({ labels, given, onClose }: { labels: StretchLabels; given: Given; onClose: () => void }): preact.JSX.Element {
  return (
    <>
      <p class="done" role="status">{told(given)}</p>
      <div class="buttons">
        {given.before.length > 0 && <button type="button" onClick={() => void labels.undo()}>Undo</button>}
        <button type="button" onClick={onClose}>Close</button>
      </div>
    </>
  );
}

function placeOf({ axis }: View, { from, to }: Stretch): string {
  if (!axis.byClock) return `Samples ${count(Math.ceil(from))} to ${count(Math.floor(to))}`;
  return `${moment(from)} to ${moment(to)}`;
}

function told({ label, answer, before }: Given): string {
  const many = before.length === 0 ? "These labels were known." : `${plural(before.length, "sample")} labelled ${label ? "anomalous" : "normal"}.`;
  return `${many} Threshold ${number(answer.threshold_before)} → ${number(answer.threshold_after)}.`;
}
