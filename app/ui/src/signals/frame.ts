// The height of a signal's frame: it holds the band and nearly all values; what is far out is drawn at its edge.
import type { Edges } from "./band";

export interface Frame {
  low: number;
  high: number;
  isLog: boolean;
}

const SHOWN = 0.98;
/** A frame is cut when all values would make it so many times as high as what it must show. */
const TOLERATED = 6;
const MARGIN = 0.08;
/** Kinds above 0 that vary over decades; they get a logarithmic frame from this ratio on. */
const LOG_KINDS = new Set(["lognormal", "gamma"]);
const WIDE = 30;

/** values: those in view; from, to: the ends of the view, between which the band counts. */
export function frameOf(values: number[], edges: Edges | null, [from, to]: [number, number], kind: string): Frame {
  const inView = (_: number, i: number): boolean => edges === null || ((edges.x[i + 1] ?? to) >= from && (edges.x[i - 1] ?? from) <= to);
  const band = extent(edges === null ? [] : [...edges.low.filter(inView), ...edges.high.filter(inView)]);
  const isLog = LOG_KINDS.has(kind) && isWide(extent(values, band));
  const [of, back] = isLog ? [Math.log, Math.exp] : [same, same];
  const expected: Extent = band[0] > band[1] ? NOTHING : [of(band[0]), of(band[1])];
  const sorted = Float64Array.from(values, of).sort();
  const cut = Math.floor((1 - SHOWN) * sorted.length);
  const all = ends(extent(sorted, expected));
  const needed = ends(extent(sorted.subarray(cut, sorted.length - cut), expected));
  const [low, high] = all[1] - all[0] > TOLERATED * (needed[1] - needed[0]) && needed[1] > needed[0] ? needed : all;
  const margin = MARGIN * (high - low || Math.abs(high) || 1);
  return { low: back(low - margin), high: back(high + margin), isLog };
}

function same(value: number): number {
  return value;
}

type Extent = [number, number];
const NOTHING: Extent = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];

/** The least and the greatest of values, and of what else is to be seen. */
function extent(values: ArrayLike<number>, [low, high]: Extent = NOTHING): Extent {
  for (let i = 0; i < values.length; i++) {
    low = Math.min(low, values[i] as number);
    high = Math.max(high, values[i] as number);
  }
  return [low, high];
}

function ends([low, high]: Extent): Extent {
  return low > high ? [0, 1] : [low, high];
}

function isWide([low, high]: Extent): boolean {
  return low > 0 && high > WIDE * low;
}
