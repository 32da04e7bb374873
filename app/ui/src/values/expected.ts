// The newest values of one feature, and the band in which the present model expects them.
import type { Band, FeatureConfig, History } from "../answers";
import { get, streamPath } from "../service";
import { newest } from "../stream-state";

export interface Value {
  seq: number;
  time: number | null;
  x: number;
  value: number;
  isAnomaly: boolean;
  low: number;
  high: number;
}

export interface Expected {
  feature: string;
  byTime: boolean;
  /** In rising order of x, which is a time in seconds or a seq. */
  values: Value[];
  band: { x: number[]; low: number[]; high: number[] };
}

const RECENT = 400;
const LEVELS = [0.05, 0.95];
const POINTS = 200;
/** Where only a calendar is context, the band goes on into the future by this share. */
const AHEAD = 0.25;

/** Read both; null while there is no value. Time is along the axis where there is a calendar, and else the number of the sample. */
export async function readExpected(stream: string, features: FeatureConfig[], k: number, byTime: boolean): Promise<Expected | null> {
  const history = await newest<History>(stream, RECENT, { values: true });
  const times = history.time.filter((time) => time !== null);
  const feature = features[k]?.name ?? "";
  if (times.length === 0) return null;
  const [from, last] = [Math.min(...times), Math.max(...times)];
  const hasContext = features.some(({ role }) => role === "context");
  const to = byTime && !hasContext ? last + AHEAD * (last - from) : last;
  const points = hasContext ? RECENT : POINTS;
  const band = placed(await get<Band>(streamPath(stream, "/band"), { feature, from, to, levels: LEVELS.join(","), points }), history, byTime);
  return { feature, byTime, values: valuesOf(history, k, byTime, band), band };
}

function placed({ time, values: [low = [], high = []], seq }: Band, history: History, byTime: boolean): Expected["band"] {
  if (byTime) return { x: time, low, high };
  if (seq !== undefined) return { x: seq, low, high };
  // without context it is the same everywhere
  const ends = [history.seq[0] ?? 1, history.seq.at(-1) ?? 1];
  return { x: ends, low: low.slice(0, 2), high: high.slice(0, 2) };
}

function valuesOf(history: History, k: number, byTime: boolean, { x: at, low, high }: Expected["band"]): Value[] {
  const values = history.seq.flatMap((seq, i) => {
    const [value, time] = [history.values?.[i]?.[k], history.time[i] ?? null];
    const x = byTime ? time : seq;
    if (value === null || value === undefined || x === null) return [];
    return [{ seq, time, x, value, isAnomaly: history.is_anomaly[i] ?? false, low: between(at, low, x), high: between(at, high, x) }];
  });
  return values.sort((a, b) => a.x - b.x);
}

/** What a line through points, which are in rising order, is at x. */
function between(at: number[], values: number[], x: number): number {
  const right = at.findIndex((place) => place >= x);
  if (right <= 0) return values.at(right) ?? Number.NaN;
  const [a, b] = [at[right - 1] as number, at[right] as number];
  const [low, high] = [values[right - 1] as number, values[right] as number];
  return b > a ? low + ((high - low) * (x - a)) / (b - a) : high;
}

export function isOutside({ value, low, high }: Value): boolean {
  return value < low || value > high;
}

const SHOWN = 0.99;
const MARGIN = 0.08;

/** The frame that holds the band and nearly all values. */
export function frameOf({ values, band }: Expected): [number, number] {
  const sorted = values.map(({ value }) => value).sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  const low = Math.min(at(1 - SHOWN), ...band.low);
  const high = Math.max(at(SHOWN), ...band.high);
  const margin = MARGIN * (high - low || Math.abs(high) || 1);
  return [low - margin, high + margin];
}
