// The score line itself.
import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { useNewest } from "../hooks";
import type { Row } from "../rows";
import { type Theme, colour } from "../theme";
import { placed } from "../timeline/axis";
import { shadeView } from "../timeline/shade";
import { drawMarks, drawPresent, drawSelected } from "../timeline/marks";
import { lineSeries, usePlot } from "../timeline/plot";
import { RIGHT_PX, bottomAxis, leftAxis } from "../timeline/ticks";
import type { View } from "../timeline/view";
import type { Frame } from "./frame";

const HEIGHT = 250;
const NEAR_PX = 12;
const MARK_PX = 5;

interface Props {
  view: View;
  frame: Frame;
  selected: number | null;
  /** The threshold of now, where the line shows the newest samples. */
  threshold: number | null;
  theme: Theme;
  onHover: (row: Row | null) => void;
  onPick: (seq: number) => void;
}

export function ScoreChart(props: Props): preact.JSX.Element {
  const { view, frame, selected, threshold, theme, onPick } = props;
  const { axis, rows, edges, brush } = view;
  const line = useMemo(() => placed(axis, rows), [axis, rows]);
  const newest = useNewest({ ...props, line });
  const pick = (plot: uPlot, x: number, y: number): void => {
    const row = nearest(plot, newest.current, x, y);
    if (row !== null) onPick(row.seq);
  };
  const host = usePlot(
    { options: () => options(newest, axis.byClock), data: () => data(newest.current), gestures: { pan: view.pan, zoom: view.zoom, brush: view.brush, pick } },
    [theme, axis.byClock],
    [line, edges, frame, selected, threshold, brush.stretch?.from, brush.stretch?.to],
  );
  return <div class="plot" ref={host} />;
}

interface Shown extends Props {
  line: ReturnType<typeof placed<Row>>;
}

function options(newest: { readonly current: Shown }, byClock: boolean): Omit<uPlot.Options, "width" | "cursor"> {
  return {
    height: HEIGHT,
    legend: { show: false },
    padding: [10, RIGHT_PX, 0, 0],
    scales: {
      x: { time: byClock, range: () => newest.current.view.edges },
      y: { range: () => [newest.current.frame.low, newest.current.frame.high] },
    },
    axes: [bottomAxis(byClock), leftAxis()],
    series: [{}, lineSeries(), lineSeries({ stroke: colour("threshold"), dash: [6, 4], points: { show: false } })],
    hooks: {
      drawClear: [(plot) => shadeView(plot, newest.current.view)],
      draw: [(plot) => draw(plot, newest.current)],
      setCursor: [(plot) => newest.current.onHover(newest.current.line.rows[plot.cursor.idx ?? -1] ?? null)],
    },
  };
}

function data({ line: { x, rows }, frame }: Shown): uPlot.AlignedData {
  const scores = rows.map((row) => (row === null || row.score === null ? null : Math.min(row.score, frame.high)));
  return [x, scores, rows.map((row) => row?.threshold ?? null)];
}

function draw(plot: uPlot, { view: { axis, rows }, selected, threshold }: Shown): void {
  const scored = rows.filter(({ score, isAnomaly, label }) => score !== null && (isAnomaly || label !== null));
  drawMarks(plot, scored.map((row) => ({ ...row, x: axis.of(row), y: row.score as number })), MARK_PX);
  if (selected !== null) drawSelected(plot, axis.place(selected));
  if (threshold !== null) drawPresent(plot, threshold);
}

/** The sample a click means: the nearest point, or the one right above or below. */
function nearest(plot: uPlot, { view: { axis, rows }, frame }: Shown, x: number, y: number): Row | null {
  let found: Row | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    const dx = Math.abs(plot.valToPos(axis.of(row), "x") - x);
    if (dx > NEAR_PX && dx > least) continue;
    const dy = row.score === null ? 0 : Math.abs(plot.valToPos(Math.min(row.score, frame.high), "y") - y);
    const distance = Math.hypot(dx, dx > NEAR_PX ? 0 : dy / 4);
    if (distance < least) [found, least] = [row, distance];
  }
  return found;
}
