// The values of one feature over the time of the view, with the expected band behind them.
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { useNewest } from "../hooks";
import type { Row } from "../rows";
import { type Theme, colour } from "../theme";
import type { placed } from "../timeline/axis";
import { shadeView } from "../timeline/shade";
import { type Mark, drawMarks, drawSelected } from "../timeline/marks";
import { lineSeries, usePlot } from "../timeline/plot";
import { RIGHT_PX, bottomAxis, leftAxis, logAxis } from "../timeline/ticks";
import type { View } from "../timeline/view";
import type { Edges } from "./band";
import { type Frame, frameOf } from "./frame";
import type { Signal } from "./order";

const HEIGHT = 92;
const AXIS_HEIGHT = 44;
const MARK_PX = 4;
const ROW_PX = 26;
/** Kinds whose values are whole numbers: drawn as steps, with ticks at whole numbers only. */
const WHOLE = new Set(["poisson", "categorical", "bernoulli"]);
const WHOLE_STEPS = Array.from({ length: 16 }, (_, i) => [1, 2, 5].map((step) => step * 10 ** i)).flat();

export interface ChartProps {
  signal: Signal;
  view: View;
  /** The samples with their places, in this order. */
  line: ReturnType<typeof placed<Row>>;
  edges: Edges | null;
  selected: number | null;
  theme: Theme;
  /** Whether the axis below has labels. */
  isLast: boolean;
  isHidden: boolean;
  onHover: (row: Row | null) => void;
  onPick: (seq: number) => void;
}

export function SignalChart(props: ChartProps): preact.JSX.Element {
  const { signal, view, line, edges, selected, theme, isLast, isHidden, onPick } = props;
  const { axis, brush } = view;
  const frame = useMemo(() => {
    const [from, to] = view.edges;
    return frameOf(inView(line, signal.k, from, to), edges, [from, to], signal.kind);
  }, [line, edges, view.edges, signal.k]);
  const newest = useNewest({ ...props, frame });
  const host = usePlot(
    {
      options: () => options(newest),
      data: () => data(newest.current),
      gestures: { pan: view.pan, zoom: view.zoom, brush: view.brush, pick: (plot, x) => pick(plot, x, newest.current.line, onPick) },
    },
    [theme, axis.byClock, frame.isLog, isLast],
    [line, frame, edges, selected, view.edges, brush.stretch?.from, brush.stretch?.to],
    isHidden,
  );
  return <div class={isLast ? "plot last" : "plot"} ref={host} />;
}

interface Shown extends ChartProps {
  frame: Frame;
}

function options(newest: { readonly current: Shown }): Omit<uPlot.Options, "width" | "cursor"> {
  const { view: { axis }, frame, isLast, signal } = newest.current;
  const stepped = WHOLE.has(signal.kind) ? { paths: uPlot.paths.stepped?.({ align: 1 }) } : {};
  return {
    height: HEIGHT + (isLast ? AXIS_HEIGHT : 0),
    legend: { show: false },
    padding: [6, RIGHT_PX, isLast ? 0 : 6, 0],
    scales: {
      x: { time: axis.byClock, range: () => newest.current.view.edges },
      y: { distr: frame.isLog ? 3 : 1, range: () => [newest.current.frame.low, newest.current.frame.high] },
    },
    axes: [{ ...bottomAxis(axis.byClock, isLast), ...(isLast ? { size: AXIS_HEIGHT } : {}) }, frame.isLog ? logAxis() : leftAxis({ space: ROW_PX, incrs: WHOLE.has(signal.kind) ? WHOLE_STEPS : undefined })],
    series: [{}, lineSeries({ width: 1.25, ...stepped })],
    hooks: {
      drawClear: [(plot) => shadeView(plot, newest.current.view), (plot) => drawBand(plot, newest.current.edges)],
      draw: [(plot) => draw(plot, newest.current)],
      setCursor: [(plot) => newest.current.onHover(newest.current.line.rows[plot.cursor.idx ?? -1] ?? null)],
    },
  };
}

/** Values beyond the frame are drawn at its edge. */
function data({ line: { x, rows }, signal: { k }, frame: { low, high } }: Shown): uPlot.AlignedData {
  const within = (value: number | null | undefined): number | null => (value == null ? null : Math.min(Math.max(value, low), high));
  return [x, rows.map((row) => within(row?.values?.[k]))];
}

function draw(plot: uPlot, { line: { x, rows }, signal: { k }, frame, view: { axis }, selected }: Shown): void {
  const marks: Mark[] = rows.flatMap((row, i) => {
    const value = row?.values?.[k];
    if (row === null || value == null || !(row.isAnomaly || row.label !== null)) return [];
    return [{ x: x[i] as number, y: Math.min(Math.max(value, frame.low), frame.high), isAnomaly: row.isAnomaly, label: row.label }];
  });
  drawMarks(plot, marks, MARK_PX);
  if (selected !== null) drawSelected(plot, axis.place(selected));
}

function drawBand(plot: uPlot, edges: Edges | null): void {
  if (edges === null || edges.x.length === 0) return;
  const { ctx, bbox } = plot;
  const { min: first = 0, max: last = 1 } = plot.scales.x as uPlot.Scale;
  const across = (at: number): number => plot.valToPos(Math.min(Math.max(at, first), last), "x", true);
  const up = (value: number): number => plot.valToPos(value, "y", true);
  const shown = edges.x.map((_, i) => i).filter((i) => (edges.x[i + 1] ?? last) >= first && (edges.x[i - 1] ?? first) <= last);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("band");
  ctx.beginPath();
  for (const i of shown) ctx.lineTo(across(edges.x[i] as number), up(edges.high[i] as number));
  for (const i of shown.reverse()) ctx.lineTo(across(edges.x[i] as number), up(edges.low[i] as number));
  ctx.closePath();
  ctx.fill();
  ctx.restore();
}

function inView({ x, rows }: ChartProps["line"], k: number, from: number, to: number): number[] {
  const values: number[] = [];
  for (let i = 0; i < rows.length; i++) {
    const value = rows[i]?.values?.[k];
    const at = x[i] as number;
    if (value != null && at >= from && at <= to) values.push(value);
  }
  return values;
}

function pick(plot: uPlot, x: number, { rows }: ChartProps["line"], onPick: (seq: number) => void): void {
  const at = plot.posToIdx(x);
  const row = rows[at] ?? rows[at - 1];
  if (row != null) onPick(row.seq);
}
