// The score line itself: uPlot with our markers.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number } from "../format";
import { useNewest, useWidth } from "../hooks";
import type { Row } from "../rows";
import { type Theme, colour } from "../theme";
import type { Frame } from "./frame";
import { type Gestures, listen } from "./gestures";
import { shadeIncidents } from "./incidents";
import { drawMarkers } from "./markers";
import type { Span } from "./span";

const HEIGHT = 250;
const NEAR_PX = 12;

interface Shown {
  rows: Row[];
  span: Span;
  frame: Frame;
  selected: number | null;
  /** The threshold of now, where the line shows the newest samples. */
  threshold: number | null;
}

interface Props extends Shown {
  theme: Theme;
  onHover: (row: Row | null) => void;
  onPick: (seq: number) => void;
  gestures: Pick<Gestures, "pan" | "zoom">;
}

export function ScoreChart(props: Props): preact.JSX.Element {
  const [host, width] = useWidth();
  const element = useRef<HTMLDivElement | null>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useNewest(props);

  useEffect(() => {
    if (width === 0 || element.current === null) return;
    const made = make(width, element.current, newest);
    plot.current = made;
    show(made, newest.current);
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [width, props.theme]);

  useEffect(() => {
    if (plot.current !== null) show(plot.current, props);
  }, [props.rows, props.span, props.frame, props.selected, props.threshold]);

  return <div class="plot" ref={(it) => { element.current = it; host(it); }} />;
}

function make(width: number, host: HTMLElement, newest: { readonly current: Props }): uPlot {
  const plot = new uPlot(
    {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
      scales: { x: { time: false, range: () => ends(newest.current.span) }, y: { range: () => edges(newest.current.frame) } },
      axes: [axis({ space: 70, size: 30, values: whole }), axis({ size: 52, values: numbers })],
      series: [
        {},
        { stroke: colour("line"), width: 1.5, points: { show: false } },
        { stroke: colour("threshold"), width: 1.5, dash: [6, 4], points: { show: false } },
      ],
      hooks: {
        drawClear: [(it) => shadeIncidents(it, newest.current.rows)],
        draw: [(it) => drawMarkers(it, newest.current)],
        setCursor: [(it) => newest.current.onHover(newest.current.rows[it.cursor.idx ?? -1] ?? null)],
      },
    },
    undefined,
    host,
  );
  const pick = (x: number, y: number): void => {
    const row = nearest(plot, newest.current, x, y);
    if (row !== null) newest.current.onPick(row.seq);
  };
  listen(plot, {
    pan: (share) => newest.current.gestures.pan(share),
    zoom: (factor, at) => newest.current.gestures.zoom(factor, at),
    pick,
  });
  return plot;
}

function show(plot: uPlot, { rows, frame }: Shown): void {
  const scores = rows.map((row) => (row.score === null ? null : Math.min(row.score, frame.high)));
  plot.setData([rows.map((row) => row.seq), scores, rows.map((row) => row.threshold)]);
}

function ends(span: Span): [number, number] {
  return [span.from, span.to];
}

function edges(frame: Frame): [number, number] {
  return [frame.low, frame.high];
}

function axis(more: uPlot.Axis): uPlot.Axis {
  const grid = { stroke: colour("grid"), width: 1 };
  return { stroke: colour("ink-soft"), font: "12px system-ui, sans-serif", grid, ticks: { show: false }, ...more };
}

function whole(_: uPlot, at: number[]): string[] {
  return at.map((seq) => (Number.isInteger(seq) && seq > 0 ? seq.toLocaleString("en") : ""));
}

function numbers(_: uPlot, at: number[]): string[] {
  return at.map((value) => (Math.abs(value) >= 1e5 ? number(value) : String(Number(value.toPrecision(6)))));
}

/** The sample a click means: the nearest point, or the one right above or below. */
function nearest(plot: uPlot, { rows, frame }: Shown, x: number, y: number): Row | null {
  let found: Row | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    const dx = Math.abs(plot.valToPos(row.seq, "x") - x);
    if (dx > NEAR_PX && dx > least) continue;
    const dy = row.score === null ? 0 : Math.abs(plot.valToPos(Math.min(row.score, frame.high), "y") - y);
    const distance = Math.hypot(dx, dx > NEAR_PX ? 0 : dy / 4);
    if (distance < least) [found, least] = [row, distance];
  }
  return found;
}
