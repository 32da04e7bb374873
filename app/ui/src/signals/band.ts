// Where the present model expects the values of a feature, given its context alone.
import type { Band, FeatureConfig } from "../answers";
import { type Loaded, useLoaded } from "../hooks";
import type { Row } from "../rows";
import { get, streamPath } from "../service";
import { type Axis, between } from "../timeline/axis";

const LEVELS = [0.05, 0.95];
const MOMENTS = 300;
const SAMPLES = 2000;
/** The band of a calendar goes on by this share, so that samples that come before it is read again are inside. */
const AHEAD = 1;

/** What a band depends on. */
export type Context = "none" | "calendar" | "features";

export function contextOf(features: FeatureConfig[], hasCalendar: boolean): Context {
  if (features.some(({ role }) => role === "context")) return "features";
  return hasCalendar ? "calendar" : "none";
}

/** Whether a feature has a band: what is context is not expected, and categories have no order. */
export function hasBand({ kind, role }: FeatureConfig): boolean {
  return role !== "context" && kind !== "categorical";
}

/** Read the band over the time of rows; again when a key changes. */
export function useBand(stream: string, feature: string, context: Context, rows: Row[], isWanted: boolean, keys: unknown[]): Loaded<Band | null> {
  const isAsked = isWanted && rows.length > 0;
  return useLoaded(async () => (isAsked ? readBand(stream, feature, context, rows) : null), [stream, feature, isAsked, ...keys]);
}

async function readBand(stream: string, feature: string, context: Context, rows: Row[]): Promise<Band> {
  const times = rows.flatMap(({ time }) => (time === null ? [] : [time]));
  const [from, last] = [Math.min(...times), Math.max(...times)];
  const to = context === "calendar" ? last + AHEAD * (last - from) : last;
  const points = { none: 2, calendar: MOMENTS, features: SAMPLES }[context];
  const until = context === "features" ? rows.at(-1)?.seq : undefined;
  return get<Band>(streamPath(stream, "/band"), { feature, from, to, levels: LEVELS.join(","), points, until });
}

export interface Edges {
  x: number[];
  low: number[];
  high: number[];
}

/** The edges of a band along an axis; without any context they are the same everywhere. */
export function edgesOf(band: Band, axis: Axis, context: Context): Edges {
  const [low = [], high = []] = band.values;
  if (context === "none") {
    const everywhere = Number.MAX_SAFE_INTEGER;
    return { x: [-everywhere, everywhere], low: low.slice(0, 2), high: high.slice(0, 2) };
  }
  const x = band.time.map((time, i) => (axis.byClock ? time : (band.seq?.[i] ?? axis.atTime(time))));
  return { x, low, high };
}

export interface Expected {
  low: number;
  high: number;
}

/** What is expected at a place; null where the band does not reach. */
export function expectedAt({ x, low, high }: Edges, at: number): Expected | null {
  if (x.length === 0 || at < (x[0] as number) || at > (x.at(-1) as number)) return null;
  return { low: between(x, low, at), high: between(x, high, at) };
}

export function isOutside(value: number, expected: Expected | null): boolean {
  return expected !== null && (value < expected.low || value > expected.high);
}
