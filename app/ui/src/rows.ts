// Samples in the score line, and how events change them.
import type { Columns } from "./answers";

/** true: anomalous, false: normal, null: nobody said, or took it back. */
export type Label = boolean | null;

/** What was said of samples since the page was opened. */
export type Labels = ReadonlyMap<number, Label>;

export interface Row {
  seq: number;
  id: string | null;
  time: number | null;
  score: number | null;
  threshold: number | null;
  severity: number | null;
  /** Flagged, and not in a maintenance window: there nothing follows from it. */
  isAnomaly: boolean;
  inMaintenance: boolean;
  incident: number | null;
  label: Label;
  /** Those of the features, where they were asked for. */
  values?: (number | null)[];
}

export function rowsOf(columns: Columns): Row[] {
  return columns.seq.map((seq, i) => ({
    seq,
    id: columns.id[i] ?? null,
    time: columns.time[i] ?? null,
    score: columns.score[i] ?? null,
    threshold: columns.threshold[i] ?? null,
    severity: columns.severity[i] ?? null,
    isAnomaly: (columns.is_anomaly[i] ?? false) && !columns.in_maintenance[i],
    inMaintenance: columns.in_maintenance[i] ?? false,
    incident: columns.incident[i] ?? null,
    label: columns.label[i] ?? null,
    values: columns.values?.[i],
  }));
}

/** Append what is newer, and keep the newest of it all. */
export function extended(rows: Row[], news: Row[], most: number): Row[] {
  const last = rows.at(-1)?.seq ?? 0;
  return [...rows, ...news.filter((row) => row.seq > last)].slice(-most);
}

export function relabelled(rows: Row[], labels: Labels): Row[] {
  if (!rows.some((row) => labels.has(row.seq))) return rows;
  return rows.map((row) => (labels.has(row.seq) ? { ...row, label: labels.get(row.seq) ?? null } : row));
}
