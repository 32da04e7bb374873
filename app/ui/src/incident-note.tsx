// The incident that is open now, and the one label that ends it.
import { count, moment } from "./format";
import type { Item } from "./review/queue";

interface Props {
  /** The first sample of the open incident. */
  incident: number | null;
  /** The incident as it waits for a label; undefined once it has one. */
  item: Item | undefined;
  mayLabel: boolean;
  onNormal: (item: Item) => void;
  onReview: (item: Item) => void;
}

export function IncidentNote({ incident, item, mayLabel, onNormal, onReview }: Props): preact.JSX.Element | null {
  if (incident === null) return null;
  const since = item?.incident ? `${moment(item.incident.begin)}, sample ${count(incident)}` : `sample ${count(incident)}`;
  return (
    <p class="incident" role="status">
      <span>An incident is open since {since}.</span>
      {item !== undefined && (
        <span class="buttons">
          <button type="button" onClick={() => onReview(item)}>Review it</button>
          {mayLabel && <button type="button" title="Label its flagged samples normal: that ends the incident" onClick={() => onNormal(item)}>This is normal</button>}
        </span>
      )}
    </p>
  );
}
