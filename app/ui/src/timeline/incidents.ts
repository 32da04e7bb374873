// Which stretches of the charts belong to incidents, or to maintenance windows.
import type { Row } from "../rows";

interface Stretch {
  from: number;
  to: number;
}

/** Rows are in order, so the samples of an incident stand side by side. */
export function stretchesOf(rows: Row[]): Stretch[] {
  const stretches: (Stretch & { incident: number })[] = [];
  for (const { seq, incident } of rows) {
    if (incident === null) continue;
    const last = stretches.at(-1);
    if (last?.incident === incident) last.to = seq;
    else stretches.push({ incident, from: seq, to: seq });
  }
  return stretches;
}

/** Where samples came one after the other in maintenance windows. */
export function maintenanceOf(rows: Row[]): Stretch[] {
  const stretches: Stretch[] = [];
  rows.forEach(({ seq, inMaintenance }, i) => {
    if (!inMaintenance) return;
    const last = stretches.at(-1);
    if (last !== undefined && rows[i - 1]?.inMaintenance) last.to = seq;
    else stretches.push({ from: seq, to: seq });
  });
  return stretches;
}
