// Marks on the charts: flagged samples, labels, and the selected sample.
import type uPlot from "uplot";
import type { Label } from "../rows";
import { colour } from "../theme";

const RING = 1.4;
const PRESENT = 26;

export interface Mark {
  x: number;
  y: number;
  isAnomaly: boolean;
  label: Label;
}

/** Draw marks of so many pixels; what lies beyond the frame sits at its edge. */
export function drawMarks(plot: uPlot, marks: Mark[], pixels: number): void {
  const { ctx, bbox } = plot;
  const size = pixels * devicePixelRatio;
  const [flag, surface, anomaly, normal] = ["flag", "surface", "anomaly", "normal"].map(colour) as [string, string, string, string];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - size * 2, bbox.width + size * 2, bbox.height + size * 4);
  ctx.clip();
  ctx.setLineDash([]);
  for (const { x: at, y: value, isAnomaly, label } of marks) {
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left - size || x > bbox.left + bbox.width + size) continue;
    const y = Math.min(Math.max(plot.valToPos(value, "y", true), bbox.top + size), bbox.top + bbox.height - size);
    if (isAnomaly) triangle(ctx, x, y, size, flag, surface);
    if (label !== null) ring(ctx, x, y, RING * size, label ? "square" : "circle", label ? anomaly : normal);
  }
  ctx.restore();
}

function triangle(ctx: CanvasRenderingContext2D, x: number, y: number, size: number, fill: string, edge: string): void {
  ctx.fillStyle = fill;
  ctx.strokeStyle = edge;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, y - size);
  ctx.lineTo(x + size, y + size * 0.8);
  ctx.lineTo(x - size, y + size * 0.8);
  ctx.closePath();
  ctx.fill();
  ctx.stroke();
}

function ring(ctx: CanvasRenderingContext2D, x: number, y: number, size: number, form: "square" | "circle", paint: string): void {
  ctx.strokeStyle = paint;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  if (form === "square") ctx.rect(x - size, y - size, 2 * size, 2 * size);
  else ctx.arc(x, y, size, 0, 2 * Math.PI);
  ctx.stroke();
}

/** A dashed line from top to bottom: the sample that is looked at. */
export function drawSelected(plot: uPlot, at: number): void {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(at, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = colour("ink");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

/** A short thick line at the right edge: what the next sample will be held against. */
export function drawPresent(plot: uPlot, threshold: number): void {
  const { ctx, bbox } = plot;
  const y = plot.valToPos(threshold, "y", true);
  ctx.save();
  ctx.strokeStyle = colour("threshold");
  ctx.lineWidth = 4 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.moveTo(bbox.left + bbox.width - PRESENT * devicePixelRatio, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
