// What is shaded behind the lines: incidents, and the stretch that is marked.
import type uPlot from "uplot";
import { colour } from "../theme";
import { maintenanceOf, stretchesOf } from "./incidents";
import type { View } from "./view";

/** Shade incidents and maintenance with half a sample more on both sides, and over them what is marked, between two edges. */
export function shadeView(plot: uPlot, { axis, rows, brush: { stretch } }: View): void {
  for (const [paint, stretches] of [["flag-soft", stretchesOf(rows)], ["maintenance", maintenanceOf(rows)]] as const) {
    shade(plot, colour(paint), stretches.map(({ from, to }) => [axis.place(from - 0.5), axis.place(to + 0.5)]));
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
