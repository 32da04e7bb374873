// What is expected of one feature, and what came.
import { useState } from "preact/hooks";
import type { FeatureConfig } from "../answers";
import { Card, ErrorNote } from "../card";
import { count, moment, number, plural } from "../format";
import { useLoaded } from "../hooks";
import type { Theme } from "../theme";
import { ValuesChart } from "./chart";
import { type Expected, type Value, isOutside, readExpected } from "./expected";

const TABLE_ROWS = 12;

interface Props {
  stream: string;
  features: FeatureConfig[];
  hasCalendar: boolean;
  version: number;
  theme: Theme;
  onSelect: (seq: number) => void;
}

export function ValuesCard({ stream, features, hasCalendar, version, theme, onSelect }: Props): preact.JSX.Element {
  const shown = features.flatMap(({ name, role }, k) => (role === "context" ? [] : [{ name, k }]));
  const [chosen, setChosen] = useState(shown[0]?.k ?? 0);
  const { data, problem } = useLoaded(() => readExpected(stream, features, chosen, hasCalendar), [stream, chosen, version]);
  const expected = data?.feature === features[chosen]?.name ? data : null;
  return (
    <Card
      title="Values"
      caption="The band = where the model expects nine of ten values of this feature."
      tools={<Choice shown={shown} chosen={chosen} onChange={setChosen} />}
    >
      <ErrorNote problem={problem} />
      {expected === null ? <div class="waiting" /> : <ValuesChart expected={expected} theme={theme} />}
      <ul class="legend" aria-label="Marks">
        <li><span class="mark line" />value</li>
        <li><span class="mark flagged" />flagged</li>
        <li><span class="mark band" />expected</li>
      </ul>
      <p class="readout">{expected !== null && told(expected)}</p>
      {expected !== null && <OutsideTable values={expected.values.filter(isOutside)} onSelect={onSelect} />}
    </Card>
  );
}

interface ChoiceProps {
  shown: { name: string; k: number }[];
  chosen: number;
  onChange: (k: number) => void;
}

function Choice({ shown, chosen, onChange }: ChoiceProps): preact.JSX.Element {
  return (
    <div class="choice">
      <label>of <select value={chosen} onChange={(event) => onChange(Number(event.currentTarget.value))}>{shown.map(({ name, k }) => <option key={k} value={k}>{name}</option>)}</select></label>
    </div>
  );
}

function told({ feature, values }: Expected): string {
  const last = values.at(-1);
  if (last === undefined) return `No value of ${feature} among the newest samples.`;
  const outside = values.filter(isOutside).length;
  const now = `${feature} is ${number(last.value)}, expected ${number(last.low)} to ${number(last.high)}.`;
  return `${now} Outside the band: ${count(outside)} of ${plural(values.length, "value")}.`;
}

function OutsideTable({ values, onSelect }: { values: Value[]; onSelect: (seq: number) => void }): preact.JSX.Element {
  return (
    <details class="table">
      <summary>Values outside the band as a table</summary>
      {values.length === 0 ? (
        <p class="empty">None among the newest samples.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="group" aria-label="Values outside the band">
          <table>
            <thead>
              <tr><th class="n">Sample</th><th>Time</th><th class="n">Value</th><th class="n">Expected from</th><th class="n">to</th><th><span class="hidden">Look</span></th></tr>
            </thead>
            <tbody>
              {values.slice(-TABLE_ROWS).reverse().map(({ seq, time, value, low, high }) => (
                <tr key={seq}>
                  <td class="n">{count(seq)}</td>
                  <td>{moment(time)}</td>
                  <td class="n">{number(value)}</td>
                  <td class="n">{number(low)}</td>
                  <td class="n">{number(high)}</td>
                  <td><button type="button" class="link" onClick={() => onSelect(seq)}>Why<span class="hidden"> value of sample {seq}</span></button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
