// Why a sample is unusual, in words: what came, what was expected, and the share of each feature as a bar.
import { measured, number, percent, plural } from "./format";

/** One feature of a sample; contribution: the nats that it adds to the score. */
export interface Reason {
  name: string;
  value: number | null;
  expected: number | null;
  contribution: number | null;
  isContext?: boolean;
}

/** So many features are shown at once. */
const TOP = 5;
const LEAST_SHARE = 0.005;

/** Features, those that made the sample unusual first; all but the first few are folded. */
export function Reasons({ reasons }: { reasons: Reason[] }): preact.JSX.Element {
  const sorted = [...reasons].sort((a, b) => weight(b) - weight(a));
  const total = sorted.reduce((sum, reason) => sum + weight(reason), 0);
  const rows = sorted.map((reason) => <Row key={reason.name} reason={reason} share={total > 0 ? weight(reason) / total : 0} />);
  return (
    <>
      <ul class="reasons">{rows.slice(0, TOP)}</ul>
      {rows.length > TOP && (
        <details class="table">
          <summary>{plural(rows.length - TOP, "more feature")}</summary>
          <ul class="reasons">{rows.slice(TOP)}</ul>
        </details>
      )}
    </>
  );
}

function weight({ contribution }: Reason): number {
  return Math.max(0, contribution ?? 0);
}

function Row({ reason, share }: { reason: Reason; share: number }): preact.JSX.Element {
  const isReason = share >= LEAST_SHARE;
  return (
    <li>
      <p><b class="feature">{reason.name}</b> {sentence(reason, isReason, "now")}</p>
      {isReason && (
        <p class="share" title={`${number(reason.contribution)} nats of the score`}>
          <svg width="100%" height="8" aria-hidden="true"><rect class="track" width="100%" height="8" rx="3" /><rect class="fill" width={`${100 * share}%`} height="8" rx="3" /></svg>
          <span>{percent(share)}</span>
        </p>
      )}
    </li>
  );
}

/** What follows the name of a feature: "was 97, expected about 25 now"; when: by the model of then, or the present one. */
export function sentence({ value, expected, isContext = false }: Reason, isReason: boolean, when: "at the time" | "now"): string {
  if (isContext) return value === null ? "was not known (context, not scored)" : `was ${measured(value)} (context, not scored)`;
  if (value === null) return expected === null ? "was missing" : `was missing, expected about ${measured(expected, 3)} ${when}`;
  if (expected === null) return `was ${measured(value)}`;
  return isReason ? `was ${measured(value)}, expected about ${measured(expected, 3)} ${when}` : `was ${measured(value)}, as expected (about ${measured(expected, 3)} ${when})`;
}
