// The values of the features over the time of the view, one chart below the other.
import { useMemo, useState } from "preact/hooks";
import type { FeatureConfig, Sample, StreamDescription } from "../answers";
import { Card, ErrorNote } from "../card";
import { count, moment } from "../format";
import type { Row } from "../rows";
import type { StreamState } from "../stream-state";
import type { Theme } from "../theme";
import { placed } from "../timeline/axis";
import type { Span } from "../timeline/span";
import type { View } from "../timeline/view";
import { type Context, type Edges, contextOf } from "./band";
import { ordered } from "./order";
import { OutsideTable } from "./outside";
import { useValues } from "./rows";
import { SignalItem } from "./signal";

const FEW = 5;
/** Other bands reach ahead, and move only with what is learned. */
const SELDOM = 2;

interface Props {
  stream: string;
  state: StreamState;
  description: StreamDescription;
  features: FeatureConfig[];
  view: View;
  /** The sample that is looked at. */
  sample: Sample | null;
  theme: Theme;
  onSelect: (seq: number) => void;
}

export function SignalsCard({ stream, state, description, features, view, sample, theme, onSelect }: Props): preact.JSX.Element {
  const [isAll, setAll] = useState(false);
  const [hovered, setHovered] = useState<Row | null>(null);
  const [edges, setEdges] = useState<ReadonlyMap<string, Edges | null>>(new Map());
  const { rows, problem } = useValues(stream, state, view);
  const line = useMemo(() => placed(view.axis, rows), [view.axis, rows]);
  const told = hovered ?? rows.find(({ seq }) => seq === sample?.seq) ?? rows.at(-1) ?? null;
  const all = ordered(features, sample);
  const shown = isAll ? all : all.slice(0, FEW);
  const context = contextOf(features, description.config.calendar !== null);
  const bandKeys = view.settled === null ? [agesOf(state.version, context), null] : [null, rows];
  return (
    <Card title="Signals" caption={captionOf(sample, features.length, view.span)}>
      <ErrorNote problem={problem} />
      <ul class="signal-list">
        {shown.map((signal, i) => (
          <SignalItem
            key={signal.name}
            {...{ stream, signal, context, rows, told, view, line, theme, bandKeys }}
            isReady={description.ready}
            isLast={i === shown.length - 1}
            selected={sample?.seq ?? null}
            onHover={setHovered}
            onPick={onSelect}
            onEdges={(name, found) => setEdges((before) => new Map(before).set(name, found))}
          />
        ))}
      </ul>
      {all.length > FEW && (
        <button type="button" class="fold" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll ? `Show only the first ${FEW}` : `Show all ${count(all.length)} features`}
        </button>
      )}
      <ul class="legend" aria-label="Marks of the signals">
        <li><span class="mark line" />value</li>
        <li><span class="mark band" />expected: nine of ten values</li>
        <li><span class="mark triangle" />sample flagged</li>
        <li><span class="mark cut" />sample looked at</li>
      </ul>
      <p class="readout">{told !== null && `Numbers: those of sample ${[count(told.seq), moment(told.time)].filter(Boolean).join(", ")}.`}</p>
      <OutsideTable {...{ view, rows, edges, onSelect }} signals={shown} />
    </Card>
  );
}

/** Counts how often the band is read while it follows the stream: one of samples has to keep up with them. */
function agesOf(version: number, context: Context): number {
  return context === "features" ? version : Math.floor(version / SELDOM);
}

function captionOf(sample: Sample | null, many: number, span: Span): string {
  const band = "Green = where the model expects the value at that time.";
  if (sample === null || many === 1) return band;
  return `${band} What makes sample ${count(sample.seq)} unusual comes first.${outOfView(sample.seq, span)}`;
}

/** Where a sample is that the charts do not show. */
function outOfView(seq: number, { from, to }: Span): string {
  if (seq >= from && seq <= to) return "";
  return ` It is not in view: it came ${seq < from ? "before" : "after"} what is shown.`;
}
