// The service's answers, as far as the page reads them.

/** What a key may do on which streams: one id, or a prefix and a star. */
export interface Grant {
  scopes: string[];
  streams: string;
}

export interface Session {
  keys_required: boolean;
  signed_in: boolean;
  csrf: string | null;
  grants: Grant[] | null;
}

/** A stream in short; what is not known is null, as of one that is damaged. */
export interface StreamSummary {
  stream: string;
  readable: boolean;
  n_seen: number | null;
  ready: boolean | null;
  samples_needed: number | null;
  incident: number | null;
  incident_begin: number | null;
  incident_severity: number | null;
  to_review: number | null;
  labels: number | null;
  silent_seconds: number | null;
  flagged_lately: number | null;
  /** The last 24 hours, the present one last. */
  flags_by_hour: number[] | null;
}

export interface StreamPage {
  streams: StreamSummary[];
  next: string | null;
}

interface StreamCounts {
  streams: number;
  unknown: number;
  unreadable: number;
  warming_up: number;
  silent: number;
  open_incidents: number;
  flagged_lately: number;
  to_review: number;
}

/** Streams whose names begin alike. */
export interface StreamGroup extends StreamCounts {
  prefix: string;
}

/** All streams in sum, and those to look at first. */
export interface Totals extends StreamCounts {
  samples: number;
  labels: number;
  begin: number[];
  flags_by_hour: number[];
  groups: StreamGroup[];
  more_groups: number;
  incidents: StreamSummary[];
  review: StreamSummary[];
}

export interface Costs {
  labels: number;
  true_alarms: number;
  false_alarms: number;
  misses: number;
  true_passes: number;
}

export interface FeatureConfig {
  name: string;
  kind: string;
  role: string;
}

export interface StreamDescription {
  stream: string;
  config: { n_features: number; warmup: number; features?: FeatureConfig[] | null; calendar: { timezone: string } | null };
  n_seen: number;
  next_seq: number;
  oldest_seq: number;
  ready: boolean;
  samples_needed: number;
  threshold: number | null;
  /** The incident that is open now, by its first sample. */
  incident: number | null;
  costs: Costs;
}

export interface Columns {
  seq: number[];
  id: (string | null)[];
  time: (number | null)[];
  score: (number | null)[];
  threshold: (number | null)[];
  is_anomaly: boolean[];
  in_maintenance: boolean[];
  severity: (number | null)[];
  incident: (number | null)[];
  label: (boolean | null)[];
  values?: (number | null)[][];
}

export interface History extends Columns {
  oldest_seq: number;
  newest_seq: number;
  next: number | null;
  position: string;
}

export type Named<T> = Record<string, T>;

export interface ReviewSample {
  seq: number;
  id: string | null;
  time: number | null;
  severity: number | null;
  values: Named<number | null>;
}

/** A feature that set off an incident, and the nats that it added to the score. */
export interface IncidentFeature {
  name: string;
  value: number | null;
  expected: number;
  contribution: number;
}

/** A run of flagged samples; incident: its first one. */
export interface Incident {
  id: string;
  incident: number;
  state: string;
  begin: number;
  peak_seq: number;
  peak_severity: number;
  last_seq: number;
  last_time: number;
  ended_at: number | null;
  n_flagged: number;
  features: IncidentFeature[];
}

export interface Sample {
  seq: number;
  id: string | null;
  time: number | null;
  score: number | null;
  threshold: number | null;
  is_anomaly: boolean;
  severity: number | null;
  incident: number | null;
  label: boolean | null;
  values: Named<number | null>;
  contributions: Named<number | null> | null;
  expected: Named<number> | null;
  path: number[] | null;
  in_maintenance: boolean;
  /** Nats that labels of samples like it added to the score of now, or took from it. */
  labels_contribution: number | null;
}

export interface Node {
  id: number;
  parent: number | null;
  level: number;
  leaf: boolean;
  count: number;
  weight: number;
  mean: number[];
}

export interface Hyperplane {
  node: number;
  normal: number[];
  offset: number;
  left: number;
  right: number;
}

export interface Model {
  n_seen: number;
  n_learned: number;
  nodes: Node[];
  hyperplanes: Hyperplane[];
  scaling: { location: number[]; scale: number[] } | null;
}

export interface Grid {
  x_values: number[];
  y_values: number[];
  log_density: number[][];
}

/** values[i][j] is at level[i] and time[j]; seq is there if features are context. */
export interface Band {
  level: number[];
  time: number[];
  values: number[][];
  seq?: number[];
}

export interface FeedbackAnswer extends Costs {
  seq: (number | null)[];
  outcome: string[];
  accepted: number[];
  threshold_before: number | null;
  threshold_after: number | null;
}

export interface LabelEvent {
  seq: number[];
  label: (boolean | null)[];
}
