// The height of the score line's frame: a few huge scores must not flatten everything else.
import type { Row } from "../rows";
import type { Span } from "../timeline/span";

export interface Frame {
  low: number;
  high: number;
  /** How many scores lie above the frame; they are drawn at its top edge. */
  above: number;
}

const QUANTILE = 0.98;
/** A frame is cut when the highest score is so many times as far up as what the frame must show. */
const TOLERATED = 2;
const MARGIN = 0.08;

export function frameOf(rows: Row[], span: Span, present: number | null): Frame {
  const shown = rows.filter((row) => row.score !== null && row.seq >= span.from && row.seq <= span.to);
  if (shown.length === 0) return { low: 0, high: 1, above: 0 };
  const scores = shown.map((row) => row.score as number).sort((a, b) => a - b);
  const thresholds = shown.map((row) => row.threshold ?? Number.NEGATIVE_INFINITY);
  const low = scores[0] as number;
  const most = scores.at(-1) as number;
  const threshold = Math.max(...thresholds, present ?? Number.NEGATIVE_INFINITY);
  const needed = Math.max(threshold + 0.5 * (threshold - low), scores[Math.floor(QUANTILE * (scores.length - 1))] as number);
  const top = most - low > TOLERATED * (needed - low) ? needed : Math.max(most, needed);
  const margin = MARGIN * (top - low || 1);
  return { low: low - margin, high: top + margin, above: scores.filter((score) => score > top + margin).length };
}
