// Which stretches of the charts belong to incidents, or to maintenance windows.
import type { Row } from "../rows";

interface Stretch {
  first: Row;
  last: Row;
}

/** Where samples of one incident stand side by side. */
export function stretchesOf(rows: Row[]): Stretch[] {
  const stretches: (Stretch & { incident: number })[] = [];
  for (const row of rows) {
    if (row.incident === null) continue;
    const newest = stretches.at(-1);
    if (newest?.incident === row.incident) newest.last = row;
    else stretches.push({ incident: row.incident, first: row, last: row });
  }
  return stretches;
}

/** Where samples came one after the other in maintenance windows. */
export function maintenanceOf(rows: Row[]): Stretch[] {
  const stretches: Stretch[] = [];
  rows.forEach((row, i) => {
    if (!row.inMaintenance) return;
    const newest = stretches.at(-1);
    if (newest !== undefined && rows[i - 1]?.inMaintenance) newest.last = row;
    else stretches.push({ first: row, last: row });
  });
  return stretches;
}
