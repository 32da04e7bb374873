// The incident that is open now, and the one label that ends it.
import { count } from "./format";
import type { Row } from "./rows";

interface Props {
  incident: number | null;
  rows: Row[];
  mayLabel: boolean;
  onNormal: (seq: number) => void;
  onSelect: (seq: number) => void;
}

export function IncidentNote({ incident, rows, mayLabel, onNormal, onSelect }: Props): preact.JSX.Element | null {
  if (incident === null) return null;
  const newest = newestFlagged(incident, rows);
  return (
    <p class="incident" role="status">
      <span>An incident is open since <button type="button" class="link" onClick={() => onSelect(incident)}>sample {count(incident)}</button>.</span>
      {mayLabel && <button type="button" title={`Label sample ${count(newest)} normal: that ends the incident`} onClick={() => onNormal(newest)}>This is normal</button>}
    </p>
  );
}

/** The newest flagged sample of an incident; the one that opened it, if it is no longer in view. */
function newestFlagged(incident: number, rows: Row[]): number {
  return rows.filter((row) => row.isAnomaly && row.incident === incident).at(-1)?.seq ?? incident;
}
