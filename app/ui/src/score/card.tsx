// The score line with its buttons, its caption and its table.
import { useMemo, useState } from "preact/hooks";
import { Card, ErrorNote } from "../card";
import { count, moment, number, plural } from "../format";
import type { Row } from "../rows";
import { StretchBar } from "../stretch/bar";
import type { Theme } from "../theme";
import { stretchesOf } from "../timeline/incidents";
import type { Span } from "../timeline/span";
import { ZONE } from "../timeline/ticks";
import type { View } from "../timeline/view";
import { ScoreChart } from "./chart";
import { type Frame, frameOf } from "./frame";

interface Props {
  stream: string;
  view: View;
  /** The threshold of now. */
  threshold: number | null;
  /** The timezone of the stream's calendar, if it has one. */
  calendarZone: string | null;
  theme: Theme;
  selected: number | null;
  onSelect: (seq: number) => void;
}

const PAN = 0.5;
const ZOOM = 2;
const MARK = 0.02;
const TABLE_ROWS = 12;

export function ScoreCard({ stream, view, threshold: present, calendarZone, theme, selected, onSelect }: Props): preact.JSX.Element {
  const [hovered, setHovered] = useState<Row | null>(null);
  const { span, rows, problem, brush } = view;
  const threshold = view.isLive ? present : null;
  const frame = useMemo(() => frameOf(rows, span, threshold), [rows, span, threshold]);
  const actions: Record<string, () => void> = {
    ArrowLeft: () => view.pan(-PAN / 2),
    ArrowRight: () => view.pan(PAN / 2),
    "+": () => view.zoom(1 / ZOOM),
    "=": () => view.zoom(1 / ZOOM),
    "-": () => view.zoom(ZOOM),
    Home: view.oldest,
    End: view.live,
    Escape: brush.clear,
  };
  const marking: Record<string, () => void> = {
    ArrowLeft: () => brush.extend(-MARK, selected),
    ArrowRight: () => brush.extend(MARK, selected),
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    const act = (event.shiftKey && brush.isAllowed ? marking[event.key] : undefined) ?? actions[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };

  return (
    <Card
      title="Score"
      caption="High = unusual. Above the dashed line = flagged."
      tools={<Tools view={view} />}
    >
      <ErrorNote problem={problem} />
      <div
        class={brush.isOn ? "chart marking" : "chart"}
        tabIndex={0}
        role="group"
        aria-label={`Score of each sample. Left and right arrows move, plus and minus zoom, Home goes to the oldest, End follows the newest.${brush.isAllowed ? " With Shift the arrows select a stretch to label, Escape drops it." : ""}`}
        data-from={Math.round(span.from)}
        data-to={Math.round(span.to)}
        data-axis={view.axis.byClock ? "time" : "samples"}
        onKeyDown={onKey}
      >
        <ScoreChart {...{ view, frame, selected, threshold, theme }} onHover={setHovered} onPick={onSelect} />
      </div>
      {brush.stretch !== null && <StretchBar {...{ stream, view, stretch: brush.stretch }} />}
      <Legend hasMaintenance={rows.some(({ inMaintenance }) => inMaintenance)} />
      {view.axis.byClock && <p class="note zone">{zoneNote(calendarZone)}</p>}
      <p class="readout">{hovered === null ? told(rows, span, frame) : toldOf(hovered)}</p>
      <FlaggedTable rows={rows} span={span} onSelect={onSelect} />
    </Card>
  );
}

function Tools({ view }: { view: View }): preact.JSX.Element {
  const { pan, zoom, live, isLive, axis, setByClock, brush } = view;
  return (
    <div class="buttons">
      {brush.isAllowed && <button type="button" aria-pressed={brush.isOn} title="Drag over a chart to select a stretch and label it (or hold Shift)" onClick={() => brush.setOn(!brush.isOn)}>Select</button>}
      <div class="pair" role="group" aria-label="Along the charts">
        <button type="button" aria-pressed={axis.byClock} onClick={() => setByClock(true)}>Time</button>
        <button type="button" aria-pressed={!axis.byClock} onClick={() => setByClock(false)}>Samples</button>
      </div>
      <button type="button" class="icon" aria-label="Older" title="Older" onClick={() => pan(-PAN)}>←</button>
      <button type="button" class="icon" aria-label="Newer" title="Newer" onClick={() => pan(PAN)}>→</button>
      <button type="button" class="icon" aria-label="Zoom out" title="Zoom out" onClick={() => zoom(ZOOM)}>−</button>
      <button type="button" class="icon" aria-label="Zoom in" title="Zoom in" onClick={() => zoom(1 / ZOOM)}>+</button>
      <button type="button" class="live" aria-pressed={isLive} onClick={live}>{isLive ? "Live" : "Back to live"}</button>
    </div>
  );
}

/** Whose times these are. */
function zoneNote(calendarZone: string | null): string {
  const other = calendarZone === null || calendarZone === ZONE ? "" : ` The calendar of the stream follows ${calendarZone}.`;
  return `Times are those of your browser, ${ZONE}.${other}`;
}

function Legend({ hasMaintenance }: { hasMaintenance: boolean }): preact.JSX.Element {
  return (
    <ul class="legend" aria-label="Marks">
      <li><span class="mark line" />score</li>
      <li><span class="mark dash" />threshold (thick = now)</li>
      <li><span class="mark triangle" />flagged</li>
      <li><span class="mark shade" />incident</li>
      {hasMaintenance && <li><span class="mark maintenance" />maintenance</li>}
      <li><span class="mark square" />labelled anomalous</li>
      <li><span class="mark circle" />labelled normal</li>
    </ul>
  );
}

function told(rows: Row[], span: Span, frame: Frame): string {
  const shown = rows.filter((row) => row.seq >= span.from && row.seq <= span.to);
  const last = shown.at(-1);
  if (last === undefined) return "No sample here yet.";
  const flagged = shown.filter((row) => row.isAnomaly).length;
  const above = frame.above > 0 ? ` ${plural(frame.above, "score")} above the frame, drawn at its top edge.` : "";
  const incidents = stretchesOf(shown).length;
  const within = incidents > 0 ? ` Incidents here: ${count(incidents)}.` : "";
  return `${toldOf(last)} Flagged here: ${count(flagged)} of ${plural(shown.length, "sample")} drawn.${within}${above}`;
}

function toldOf(row: Row): string {
  const when = row.time === null ? "" : `, ${moment(row.time)}`;
  if (row.score === null) return `Sample ${count(row.seq)}${when}: no score yet, the stream was warming up.`;
  if (row.inMaintenance) return `Sample ${count(row.seq)}${when}, in a maintenance window: severity ${row.severity?.toFixed(1) ?? "–"}, score ${number(row.score)}. It was not learned, and nobody is told.`;
  const side = row.isAnomaly ? "above" : "not above";
  return `Sample ${count(row.seq)}${when}: severity ${row.severity?.toFixed(1) ?? "–"}, score ${number(row.score)}, ${side} the threshold ${number(row.threshold)}.`;
}

function FlaggedTable({ rows, span, onSelect }: { rows: Row[]; span: Span; onSelect: (seq: number) => void }): preact.JSX.Element {
  const flagged = rows.filter((row) => row.isAnomaly && row.seq >= span.from && row.seq <= span.to);
  return (
    <details class="table">
      <summary>Flagged samples as a table</summary>
      {flagged.length === 0 ? (
        <p class="empty">None in this part of the stream.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="group" aria-label="Flagged samples">
          <table>
            <thead>
              <tr><th class="n">Sample</th><th class="n">Score</th><th class="n">Threshold</th><th>Label</th><th><span class="hidden">Look</span></th></tr>
            </thead>
            <tbody>
              {flagged.slice(-TABLE_ROWS).reverse().map((row) => (
                <tr key={row.seq}>
                  <td class="n">{count(row.seq)}</td>
                  <td class="n">{number(row.score)}</td>
                  <td class="n">{number(row.threshold)}</td>
                  <td>{row.label === null ? "–" : row.label ? "anomalous" : "normal"}</td>
                  <td><button type="button" class="link" onClick={() => onSelect(row.seq)}>Why<span class="hidden"> sample {row.seq}</span></button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
