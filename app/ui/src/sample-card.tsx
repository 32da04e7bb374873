// One sample: why it scored as it did.
import type { FeatureConfig, Sample } from "./answers";
import { Card, ErrorNote } from "./card";
import { count, moment, number } from "./format";
import { type Reason, Reasons } from "./reasons";
import type { Label } from "./rows";
import { meaning } from "./severity";

interface Props {
  sample: Sample | null;
  problem: Error | null;
  features: FeatureConfig[];
  hasCalendar: boolean;
  mayLabel: boolean;
  onLabel: (label: Label) => void;
  onClose: () => void;
}

export function SampleCard(props: Props): preact.JSX.Element {
  const { sample, problem, features, hasCalendar } = props;
  if (sample === null) {
    return (
      <Card title="Sample" caption="Click a point, or step through the review, to see why a sample got its score.">
        <ErrorNote problem={problem} />
      </Card>
    );
  }
  return (
    <Card title={`Sample ${count(sample.seq)}`} name="sample" tools={<button type="button" class="icon" aria-label="Close the sample" onClick={props.onClose}>×</button>}>
      <ErrorNote problem={problem} />
      <p class="severity"><b>{sample.is_anomaly ? "Flagged." : "Not flagged."}</b> {meaning(sample.severity)}{sample.incident !== null && ` Part of the incident that began with sample ${count(sample.incident)}.`}</p>
      {sample.in_maintenance && <p>It came in a maintenance window: it was scored, but not learned.</p>}
      <p class="soft">{[sample.id, moment(sample.time)].filter(Boolean).join(" · ")}</p>
      {props.mayLabel && <Verdict label={sample.label} onLabel={props.onLabel} />}
      <Reasons reasons={reasonsOf(sample, features)} />
      <p class="note">{explained(features, hasCalendar)} {scored(sample)}</p>
    </Card>
  );
}

function reasonsOf({ values, expected, contributions }: Sample, features: FeatureConfig[]): Reason[] {
  return features.map(({ name, role }) => ({
    name,
    value: values[name] ?? null,
    expected: expected?.[name] ?? null,
    contribution: contributions?.[name] ?? null,
    isContext: role === "context",
  }));
}

/** What the expected values follow from, and what the bars are. */
function explained(features: FeatureConfig[], hasCalendar: boolean): string {
  if (features.length === 1) return hasCalendar ? "Expected = by the present model, at this time." : "Expected = by the present model.";
  return `Expected = by the present model, given the other features${hasCalendar ? " and the time" : ""}. A bar is a feature's share in what made the sample unusual.`;
}

function scored({ score, threshold, labels_contribution: added }: Sample): string {
  if (score === null) return "It has no score.";
  const labels = added !== null && added > 0.05 ? ` Labels of samples like it add ${number(added)}.` : "";
  return `Score ${number(score)} nats, threshold ${number(threshold)}.${labels}`;
}

function Verdict({ label, onLabel }: { label: Label; onLabel: (label: Label) => void }): preact.JSX.Element {
  return (
    <div class="verdicts">
      <span class="soft">Label</span>
      <button type="button" aria-pressed={label === true} onClick={() => onLabel(true)}>Anomaly</button>
      <button type="button" aria-pressed={label === false} onClick={() => onLabel(false)}>Normal</button>
      <button type="button" aria-pressed={label === null} onClick={() => onLabel(null)}>None</button>
    </div>
  );
}
