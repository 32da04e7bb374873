// The score line with its buttons, its caption and its table.
import { useEffect, useState } from "preact/hooks";
import type { History } from "../answers";
import { Card, ErrorNote } from "../card";
import { count, moment, number, plural } from "../format";
import { useLoaded } from "../hooks";
import { type Row, relabelled, rowsOf } from "../rows";
import { get, streamPath } from "../service";
import type { StreamState } from "../stream-state";
import type { Theme } from "../theme";
import { ScoreChart } from "./chart";
import { type Frame, frameOf } from "./frame";
import { stretchesOf } from "./incidents";
import { type Span, liveSpan, oldest, panned, zoomed } from "./span";

interface Props {
  stream: string;
  state: StreamState;
  theme: Theme;
  selected: number | null;
  onSelect: (seq: number) => void;
}

const SETTLE_MS = 150;
const PAN = 0.5;
const ZOOM = 2;
const POINTS = 2000;
const TABLE_ROWS = 12;

export function ScoreCard({ stream, state, theme, selected, onSelect }: Props): preact.JSX.Element {
  const [view, setView] = useState<Span | null>(null);
  const [hovered, setHovered] = useState<Row | null>(null);
  const newest = state.tail.at(-1)?.seq ?? 0;
  const all = { from: state.description?.oldest_seq ?? 1, to: newest };
  const span = view ?? liveSpan(newest);
  const { rows, problem } = useRows(stream, state, view);
  const threshold = view === null ? (state.description?.threshold ?? null) : null;
  const frame = frameOf(rows, span, threshold);

  const pan = (share: number): void => setView((now) => panned(now ?? span, share, all));
  const zoom = (factor: number, at = 0.5): void => setView((now) => zoomed(now ?? span, factor, at, all));
  const live = (): void => setView(null);
  const actions: Record<string, () => void> = {
    ArrowLeft: () => pan(-PAN / 2),
    ArrowRight: () => pan(PAN / 2),
    "+": () => zoom(1 / ZOOM),
    "=": () => zoom(1 / ZOOM),
    "-": () => zoom(ZOOM),
    Home: () => setView(oldest(span, all)),
    End: live,
  };
  const onKey = (event: KeyboardEvent): void => {
    const act = event.target === event.currentTarget ? actions[event.key] : undefined;
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };

  return (
    <Card
      title="Score"
      caption="High = unusual. Above the dashed line = flagged."
      tools={<Tools isLive={view === null} pan={pan} zoom={zoom} live={live} />}
    >
      <ErrorNote problem={problem} />
      <div
        class="chart"
        tabIndex={0}
        role="group"
        aria-label="Score of each sample. Left and right arrows move, plus and minus zoom, Home goes to the oldest, End follows the newest."
        data-from={Math.round(span.from)}
        data-to={Math.round(span.to)}
        onKeyDown={onKey}
      >
        <ScoreChart
          {...{ rows, span, frame, selected, threshold, theme }}
          onHover={setHovered}
          onPick={onSelect}
          gestures={{ pan, zoom }}
        />
      </div>
      <Legend />
      <p class="readout">{hovered === null ? told(rows, span, frame) : toldOf(hovered)}</p>
      <FlaggedTable rows={rows} span={span} onSelect={onSelect} />
    </Card>
  );
}

/** The rows of the view: from what is followed where that reaches, and else from the log. */
function useRows(stream: string, state: StreamState, view: Span | null): { rows: Row[]; problem: Error | null } {
  const settled = useSettled(view);
  const reaches = (span: Span | null): boolean => span === null || span.from >= (state.tail[0]?.seq ?? 1);
  const asked = reaches(settled) ? null : settled;
  const { data, problem } = useLoaded(
    async () => (asked === null ? null : readHistory(stream, asked)),
    [stream, asked?.from, asked?.to],
  );
  if (reaches(view)) return { rows: state.tail, problem };
  return { rows: relabelled(data ?? state.tail, state.labels), problem };
}

/** Half a span more on both sides, so that a short drag shows no gap. */
async function readHistory(stream: string, span: Span): Promise<Row[]> {
  const spare = (span.to - span.from) / 2;
  const to = Math.ceil(span.to + spare);
  const rows: Row[] = [];
  let from: number | null = Math.max(1, Math.floor(span.from - spare));
  while (from !== null) {
    // the service reads this many samples at once, and says where to continue
    const part: History = await get<History>(streamPath(stream, "/history"), { from, to, points: POINTS });
    rows.push(...rowsOf(part));
    from = part.next;
  }
  return rows;
}

/** A value once it has stood still for a moment. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), SETTLE_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return settled;
}

interface ToolsProps {
  isLive: boolean;
  pan: (share: number) => void;
  zoom: (factor: number) => void;
  live: () => void;
}

function Tools({ isLive, pan, zoom, live }: ToolsProps): preact.JSX.Element {
  return (
    <div class="buttons">
      <button type="button" class="icon" aria-label="Older" title="Older" onClick={() => pan(-PAN)}>←</button>
      <button type="button" class="icon" aria-label="Newer" title="Newer" onClick={() => pan(PAN)}>→</button>
      <button type="button" class="icon" aria-label="Zoom out" title="Zoom out" onClick={() => zoom(ZOOM)}>−</button>
      <button type="button" class="icon" aria-label="Zoom in" title="Zoom in" onClick={() => zoom(1 / ZOOM)}>+</button>
      <button type="button" class="live" aria-pressed={isLive} onClick={live}>Live</button>
    </div>
  );
}

function Legend(): preact.JSX.Element {
  return (
    <ul class="legend" aria-label="Marks">
      <li><span class="mark line" />score</li>
      <li><span class="mark dash" />threshold (thick = now)</li>
      <li><span class="mark triangle" />flagged</li>
      <li><span class="mark shade" />incident</li>
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
  const within = incidents > 0 ? ` in ${plural(incidents, "incident")}` : "";
  return `${toldOf(last)} Flagged here: ${count(flagged)} of ${plural(shown.length, "sample")} drawn${within}.${above}`;
}

function toldOf(row: Row): string {
  const when = row.time === null ? "" : `, ${moment(row.time)}`;
  if (row.score === null) return `Sample ${count(row.seq)}${when}: no score yet, the stream was warming up.`;
  const side = row.isAnomaly ? "above" : "not above";
  return `Sample ${count(row.seq)}${when}: score ${number(row.score)}, ${side} the threshold ${number(row.threshold)}.`;
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
