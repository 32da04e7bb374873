// Marks on the score line: flagged samples, labels, and the selected sample.
import type uPlot from "uplot";
import type { Row } from "../rows";
import { colour } from "../theme";

const SIZE = 5;
const RING = 7;
const PRESENT = 26;

interface Marked {
  rows: Row[];
  selected: number | null;
  threshold: number | null;
}

/** Draw for the rows of a plot; a score above the frame sits at its top edge. */
export function drawMarkers(plot: uPlot, { rows, selected, threshold }: Marked): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - SIZE * 2 * ratio, bbox.width, bbox.height + SIZE * 4 * ratio);
  ctx.clip();
  for (const row of rows) {
    if (row.score === null) continue;
    const x = plot.valToPos(row.seq, "x", true);
    if (x < bbox.left - SIZE * ratio || x > bbox.left + bbox.width + SIZE * ratio) continue;
    const y = Math.max(plot.valToPos(row.score, "y", true), bbox.top + SIZE * ratio);
    if (row.isAnomaly) triangle(ctx, x, y, SIZE * ratio);
    if (row.label !== null) ring(ctx, x, y, RING * ratio, row.label);
    if (row.seq === selected) line(ctx, x, bbox);
  }
  if (threshold !== null) present(ctx, plot.valToPos(threshold, "y", true), bbox);
  ctx.restore();
}

function triangle(ctx: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  ctx.fillStyle = colour("flag");
  ctx.strokeStyle = colour("surface");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.moveTo(x, y - size);
  ctx.lineTo(x + size, y + size * 0.8);
  ctx.lineTo(x - size, y + size * 0.8);
  ctx.closePath();
  ctx.fill();
  ctx.stroke();
}

function ring(ctx: CanvasRenderingContext2D, x: number, y: number, size: number, isAnomaly: boolean): void {
  ctx.strokeStyle = colour(isAnomaly ? "anomaly" : "normal");
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  if (isAnomaly) ctx.rect(x - size, y - size, 2 * size, 2 * size);
  else ctx.arc(x, y, size, 0, 2 * Math.PI);
  ctx.stroke();
}

function line(ctx: CanvasRenderingContext2D, x: number, bbox: uPlot.BBox): void {
  ctx.strokeStyle = colour("ink");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
}

/** A short thick line at the right edge: what the next sample will be held against. */
function present(ctx: CanvasRenderingContext2D, y: number, bbox: uPlot.BBox): void {
  ctx.strokeStyle = colour("threshold");
  ctx.lineWidth = 4 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.moveTo(bbox.left + bbox.width - PRESENT * devicePixelRatio, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
}
