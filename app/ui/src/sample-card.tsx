// One sample: why it scored as it did.
import type { FeatureConfig, Sample } from "./answers";
import { Card, ErrorNote } from "./card";
import { count, moment, number } from "./format";
import type { Label } from "./rows";

interface Props {
  sample: Sample | null;
  problem: Error | null;
  features: FeatureConfig[];
  mayLabel: boolean;
  onLabel: (label: Label) => void;
  onClose: () => void;
}

export function SampleCard(props: Props): preact.JSX.Element {
  const { sample, problem, features } = props;
  if (sample === null) {
    return (
      <Card title="Sample" caption="Click a point, or step through the review, to see why a sample got its score.">
        <ErrorNote problem={problem} />
      </Card>
    );
  }
  return (
    <Card title={`Sample ${count(sample.seq)}`} name="sample" caption={scored(sample)} tools={<button type="button" class="icon" aria-label="Close the sample" onClick={props.onClose}>×</button>}>
      <ErrorNote problem={problem} />
      {sample.severity !== null && <p class="severity">{meaning(sample.severity)}{sample.incident !== null && ` Part of the incident that began with sample ${count(sample.incident)}.`}</p>}
      <p class="soft">{[sample.id, moment(sample.time)].filter(Boolean).join(" · ")}</p>
      <Contributions sample={sample} features={features} />
      {props.mayLabel && <Verdict label={sample.label} onLabel={props.onLabel} />}
    </Card>
  );
}

function scored({ score, threshold, is_anomaly: isAnomaly }: Sample): string {
  if (score === null) return "No score: the stream was warming up.";
  return `Score ${number(score)} nats, ${isAnomaly ? "above" : "not above"} the threshold ${number(threshold)}: ${isAnomaly ? "flagged" : "not flagged"}.`;
}

const RARE = 2;

/** What a severity says: a chance as far as it can be trusted, then only a rank. */
function meaning(severity: number): string {
  const told = `Severity ${severity.toFixed(1)}:`;
  if (severity > RARE) return `${told} fewer than one ordinary sample in ${count(10 ** RARE)} scores as high; the larger, the graver.`;
  const every = Math.round(10 ** severity);
  return every < 2 ? `${told} most ordinary samples score as high.` : `${told} about one ordinary sample in ${count(every)} scores as high.`;
}

/** Value, expected value and contribution of each feature; those that made it unusual first. */
function Contributions({ sample, features }: { sample: Sample; features: FeatureConfig[] }): preact.JSX.Element {
  const { contributions, expected, values } = sample;
  const of = (name: string): number => contributions?.[name] ?? 0;
  const names = features.map(({ name }) => name).sort((a, b) => of(b) - of(a));
  const context = new Set(features.filter(({ role }) => role === "context").map(({ name }) => name));
  const most = Math.max(1e-9, ...names.map((name) => Math.abs(of(name))));
  return (
    <>
      <div class="scroll" tabIndex={0} role="group" aria-label="Features of the sample">
        <table class="contributions">
          <thead><tr><th>Feature</th><th class="n">Value</th><th class="n">Expected</th><th class="bars">Makes it unusual</th></tr></thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row">{name}{context.has(name) && <span class="soft"> (context)</span>}</th>
                <td class="n">{number(values[name])}</td>
                <td class="n">{number(expected?.[name])}</td>
                <td class="bars"><Bar value={contributions?.[name] ?? null} most={most} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">Each bar shows how much lower the score would be without that feature. Expected = its mean given the other features, by the present model.{context.size > 0 && " Context is known and not scored, so it has no bar."}</p>
    </>
  );
}

function Bar({ value, most }: { value: number | null; most: number }): preact.JSX.Element {
  if (value === null) return <span class="soft">–</span>;
  const share = Math.max(0, value) / most;
  return (
    <span class="bar">
      <svg width="100%" height="10" aria-hidden="true"><rect class="track" width="100%" height="10" rx="3" /><rect class="fill" width={`${100 * share}%`} height="10" rx="3" /></svg>
      <span>{value > 0 ? "+" : ""}{number(value)}</span>
    </span>
  );
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
