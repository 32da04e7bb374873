// The height of a signal's frame: it holds the band and nearly all values; what is far out is drawn at its edge.
import type { Edges } from "./band";

export interface Frame {
  low: number;
  high: number;
  isLog: boolean;
}

const SHOWN = 0.98;
/** A frame is cut when all values would make it so many times as high as what it must show. */
const TOLERATED = 4;
const MARGIN = 0.08;
/** Kinds above 0 that vary over decades; they get a logarithmic frame from this ratio on. */
const LOG_KINDS = new Set(["lognormal", "gamma"]);
const WIDE = 30;

/** values: those in view; from, to: the ends of the view, between which the band counts. */
export function frameOf(values: number[], edges: Edges | null, [from, to]: [number, number], kind: string): Frame {
  const inView = (_: number, i: number): boolean => edges === null || ((edges.x[i + 1] ?? to) >= from && (edges.x[i - 1] ?? from) <= to);
  const band = edges === null ? [] : [...edges.low.filter(inView), ...edges.high.filter(inView)];
  const isLog = LOG_KINDS.has(kind) && ratio([...values, ...band]) > WIDE;
  const [of, back] = isLog ? [Math.log, Math.exp] : [same, same];
  const sorted = values.map(of).sort((a, b) => a - b);
  const all = extent([...sorted, ...band.map(of)]);
  const cut = Math.floor((1 - SHOWN) * sorted.length);
  const needed = extent([...sorted.slice(cut, sorted.length - cut), ...band.map(of)]);
  const [low, high] = all[1] - all[0] > TOLERATED * (needed[1] - needed[0]) && needed[1] > needed[0] ? needed : all;
  const margin = MARGIN * (high - low || Math.abs(high) || 1);
  return { low: back(low - margin), high: back(high + margin), isLog };
}

function same(value: number): number {
  return value;
}

function extent(values: number[]): [number, number] {
  if (values.length === 0) return [0, 1];
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

function ratio(values: number[]): number {
  const [low, high] = extent(values);
  return low > 0 ? high / low : 1;
}
