// What is shaded behind the lines: incidents, and the stretch that is marked.
import type uPlot from "uplot";
import type { Row } from "../rows";
import { colour } from "../theme";
import { maintenanceOf, stretchesOf } from "./incidents";
import type { View } from "./view";

/** Shade incidents and maintenance with half a sample more on both sides, and over them what is marked, between two edges. */
export function shadeView(plot: uPlot, { axis, rows, brush: { stretch } }: View): void {
  // late samples stand among those of their time
  const sorted = [...rows].sort((a, b) => axis.of(a) - axis.of(b));
  const beside = (row: Row, step: number): number => axis.of(row) + axis.place(row.seq + step) - axis.place(row.seq);
  for (const [paint, stretches] of [["flag-soft", stretchesOf(sorted)], ["maintenance", maintenanceOf(sorted)]] as const) {
    shade(plot, colour(paint), stretches.map(({ first, last }) => [beside(first, -0.5), beside(last, 0.5)]));
  }
  if (stretch === null) return;
  shade(plot, colour("marked"), [[stretch.from, stretch.to]]);
  shade(plot, colour("accent"), [[stretch.from, stretch.from], [stretch.to, stretch.to]]);
}

/** Fill parts of the frame from top to bottom; a part without width is a line. */
function shade(plot: uPlot, paint: string, parts: [number, number][]): void {
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
