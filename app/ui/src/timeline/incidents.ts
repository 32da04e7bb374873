// Which stretches of the charts belong to incidents.
import type { Row } from "../rows";

interface Stretch {
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
