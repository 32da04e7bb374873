// The density as nested areas, a path each.
import { contours, type ContourMultiPolygon } from "d3-contour";
import type { Grid } from "../answers";
import type { Axis } from "./axis";

/** Nats below the peak. */
const LEVELS = [18, 13, 9, 6, 4, 2.5, 1.2, 0.4];

/** Lowest first; what is drawn later lies inside. */
export function contourPaths(grid: Grid, x: Axis, y: Axis): string[] {
  const values = grid.log_density.flat();
  const peak = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const lines = contours().size([grid.x_values.length, grid.y_values.length]);
  return lines.thresholds(LEVELS.map((level) => peak - level))(values).map((area) => pathOf(area, x, y));
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
