// Which features are shown first.
import type { FeatureConfig, Sample } from "../answers";

export interface Signal extends FeatureConfig {
  /** The place of its values in a row. */
  k: number;
}

/** Those that made a sample unusual first, context last; without a sample in the order of the stream. */
export function ordered(features: FeatureConfig[], sample: Sample | null): Signal[] {
  const explains = ({ name }: Signal): number => sample?.contributions?.[name] ?? 0;
  const late = ({ role }: Signal): number => (role === "context" ? 1 : 0);
  const all = features.map((feature, k) => ({ ...feature, k }));
  return all.sort((a, b) => late(a) - late(b) || explains(b) - explains(a) || a.k - b.k);
}
