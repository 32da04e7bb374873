// Which stretches of the charts belong to incidents, and their shade.
import type uPlot from "uplot";
import type { Row } from "../rows";
import { colour } from "../theme";
import type { Axis } from "./axis";

export interface Stretch {
  incident: number;
  from: number;
  to: number;
}

/** Rows are in order, so the samples of an incident stand side by side. */
export function stretchesOf(rows: Row[]): Stretch[] {
  const stretches: Stretch[] = [];
  for (const { seq, incident } of rows) {
    if (incident === null) continue;
    const last = stretches.at(-1);
    if (last?.incident === incident) last.to = seq;
    else stretches.push({ incident, from: seq, to: seq });
  }
  return stretches;
}

/** Shade the stretches, with half a sample more on both sides. */
export function shadeIncidents(plot: uPlot, axis: Axis, rows: Row[]): void {
  shade(plot, colour("flag-soft"), stretchesOf(rows).map(({ from, to }) => [axis.place(from - 0.5), axis.place(to + 0.5)]));
}

/** Fill parts of the frame from top to bottom. */
export function shade(plot: uPlot, paint: string, parts: [number, number][]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = paint;
  for (const [from, to] of parts) {
    const [left, right] = [plot.valToPos(from, "x", true), plot.valToPos(to, "x", true)];
    ctx.fillRect(left, bbox.top, Math.max(right - left, devicePixelRatio), bbox.height);
  }
  ctx.restore();
}
