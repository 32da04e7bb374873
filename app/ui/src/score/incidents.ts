// Which stretches of the score line belong to incidents, and their shade.
import type uPlot from "uplot";
import type { Row } from "../rows";
import { colour } from "../theme";

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

/** Shade the stretches, from the middle before the first sample to the middle after the last. */
export function shadeIncidents(plot: uPlot, rows: Row[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("flag-soft");
  for (const { from, to } of stretchesOf(rows)) {
    const [left, right] = [plot.valToPos(from - 0.5, "x", true), plot.valToPos(to + 0.5, "x", true)];
    ctx.fillRect(left, bbox.top, Math.max(right - left, devicePixelRatio), bbox.height);
  }
  ctx.restore();
}
