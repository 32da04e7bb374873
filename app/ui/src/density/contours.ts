// The density as nested areas, one path each.
import { contours, type ContourMultiPolygon } from "d3-contour";
import type { Grid } from "../answers";
import type { Axis } from "./axis";

const AREAS = 8;
/** Areas come closer together towards the peak. */
const BEND = 1.6;
/** The outermost area lies so many nats below the peak at least, and at most. */
const LEAST_DEPTH = 5;
const MOST_DEPTH = 18;

/** Lowest first; what is drawn later lies inside. */
export function contourPaths(grid: Grid, x: Axis, y: Axis): string[] {
  const values = grid.log_density.flat();
  const lines = contours().size([grid.x_values.length, grid.y_values.length]);
  return lines.thresholds(levels(grid.log_density))(values).map((area) => pathOf(area, x, y));
}

/** From where areas close inside the grid, as far as possible, up to the peak. */
function levels(rows: number[][]): number[] {
  const most = (values: number[]): number => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const peak = most(rows.map(most));
  const border = [rows[0] ?? [], rows.at(-1) ?? [], ...rows.map((row) => [row[0] ?? peak, row.at(-1) ?? peak])];
  const depth = Math.min(Math.max(peak - most(border.map(most)), LEAST_DEPTH), MOST_DEPTH);
  return Array.from({ length: AREAS }, (_, k) => peak - depth * (1 - k / AREAS) ** BEND);
}

function pathOf(area: ContourMultiPolygon, x: Axis, y: Axis): string {
  // d3 counts a grid's values from the middle of unit squares
  const at = ([i, j]: number[]): string =>
    `${x.pixel((i as number) - 0.5).toFixed(1)},${y.pixel((j as number) - 0.5).toFixed(1)}`;
  return area.coordinates
    .flat()
    .map((ring) => `M${ring.map(at).join("L")}Z`)
    .join("");
}
