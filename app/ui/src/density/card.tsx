// The density, the choice of its two features, and the same in words.
import { useId, useState } from "preact/hooks";
import type { FeatureConfig, Grid, History, Model, Sample } from "../answers";
import { Card, ErrorNote } from "../card";
import { coordinate } from "../coordinates";
import { count, number, percent } from "../format";
import { useLoaded, useWidth } from "../hooks";
import { get } from "../service";
import { newest } from "../stream-state";
import { DensityPlot } from "./plot";

const RECENT = 400;
const GRID_SIZE = 48;
const TABLE_ROWS = 12;

interface Props {
  stream: string;
  features: FeatureConfig[];
  version: number;
  model: Model | null;
  sample: Sample | null;
  onSelect: (seq: number) => void;
}

export function DensityCard(props: Props): preact.JSX.Element {
  const { features } = props;
  const [pair, setPair] = useState<[number, number]>([0, 1]);
  const caption = "Darker = the model expects more samples there. Dashed lines = where the tree divides the space.";
  if (features.length < 2) {
    return <Card title="Density" caption={caption}><p class="empty">This picture needs two features; the stream has one.</p></Card>;
  }
  return (
    <Card title="Density" caption={caption} tools={<Choice features={features} pair={pair} onChange={setPair} />}>
      <Plane {...props} i={pair[0]} j={pair[1]} />
    </Card>
  );
}

function Plane({ stream, features, version, model, sample, onSelect, i, j }: Props & { i: number; j: number }): preact.JSX.Element {
  const [host, width] = useWidth();
  const told = useId();
  const [x, y] = [features[i]?.name ?? "", features[j]?.name ?? ""];
  const keys = [stream, x, y, version];
  const { data, problem } = useLoaded(async () => {
    // both at once; both are awaited even if both fail
    const [grid, history] = await Promise.all([
      get<Grid>("density/grid", { stream, x, y, size: GRID_SIZE }),
      newest<History>(stream, RECENT, { values: true }),
    ]);
    return { grid, history, i, j };
  }, keys);
  const isCurrent = data !== null && data.i === i && data.j === j;
  return (
    <div ref={host}>
      <ErrorNote problem={problem} />
      {isCurrent && width > 0 ? (
        <DensityPlot {...{ ...data, width, model, features, sample, onSelect, describedBy: told }} />
      ) : (
        <div class="waiting" />
      )}
      <ul class="legend" aria-label="Marks">
        <li><span class="mark dot" />sample</li>
        <li><span class="mark triangle" />flagged</li>
        <li><span class="mark cross" />labelled anomalous</li>
        <li><span class="mark cut" />cut of the tree</li>
      </ul>
      <p class="readout" id={told}>{isCurrent && sentence(data.grid, data.history, x, y)}</p>
      {features.length > 2 && (
        <p class="note">
          The cuts go through all {features.length} features. They are drawn where they pass if the others are{" "}
          {sample === null ? "at their mean" : `as in sample ${sample.seq}`}; a cut that depends more on those is fainter.
        </p>
      )}
      {model !== null && <NodeTable model={model} features={features} i={i} j={j} />}
    </div>
  );
}

function sentence(grid: Grid, history: History, x: string, y: string): string {
  const rows = grid.log_density.map((row) => Math.max(...row));
  const peak = rows.indexOf(Math.max(...rows));
  const column = grid.log_density[peak]?.indexOf(rows[peak] as number) ?? 0;
  const flagged = history.is_anomaly.filter(Boolean).length;
  const place = `${x} = ${number(grid.x_values[column])}, ${y} = ${number(grid.y_values[peak])}`;
  return `Densest near ${place}. ${count(flagged)} of the newest ${count(history.seq.length)} samples are flagged. Samples farther out are drawn at the edge.`;
}

interface ChoiceProps {
  features: FeatureConfig[];
  pair: [number, number];
  onChange: (pair: [number, number]) => void;
}

/** Choosing what the other axis shows swaps the two. */
function Choice({ features, pair: [i, j], onChange }: ChoiceProps): preact.JSX.Element {
  const options = features.map(({ name }, k) => <option key={k} value={k}>{name}</option>);
  const choose = (event: Event): number => Number((event.currentTarget as HTMLSelectElement).value);
  return (
    <div class="choice">
      <label>across <select value={i} onChange={(event) => { const k = choose(event); onChange([k, k === j ? i : j]); }}>{options}</select></label>
      <label>up <select value={j} onChange={(event) => { const k = choose(event); onChange([k === i ? j : i, k]); }}>{options}</select></label>
    </div>
  );
}

function NodeTable({ model, features, i, j }: { model: Model; features: FeatureConfig[]; i: number; j: number }): preact.JSX.Element {
  const value = (mean: number[], k: number): string => number(coordinate(features[k]?.kind ?? "").value(mean[k] ?? Number.NaN));
  const nodes = [...model.nodes].sort((a, b) => b.weight - a.weight).slice(0, TABLE_ROWS);
  return (
    <details class="table">
      <summary>The heaviest nodes as a table</summary>
      <div class="scroll" tabIndex={0} role="group" aria-label="Means of the heaviest nodes">
        <table>
          <thead><tr><th class="n">Node</th><th class="n">Weight</th><th class="n">Mean {features[i]?.name}</th><th class="n">Mean {features[j]?.name}</th></tr></thead>
          <tbody>
            {nodes.map(({ id, weight, mean }) => (
              <tr key={id}><td class="n">{id}</td><td class="n">{percent(weight)}</td><td class="n">{value(mean, i)}</td><td class="n">{value(mean, j)}</td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
