// Where samples stand along the charts: by the clock, or by their number.
import type { Row } from "../rows";
import type { Span } from "./span";

export interface Axis {
  byClock: boolean;
  /** Where a sample stands. */
  of: (row: Pick<Row, "seq" | "time">) => number;
  /** Where a seq stands, which may lie between two samples or outside of all. */
  place: (seq: number) => number;
  /** The seq at a place. */
  seqAt: (x: number) => number;
  /** Where a time stands. */
  atTime: (seconds: number) => number;
}

/** A clock axis shows at least so many seconds. */
const SHORTEST = 2;

/** The axis for rows in the order of their seqs. The clock goes as they tell it; a late sample does not turn it back. */
export function axisOf(rows: Row[], byClock: boolean): Axis {
  const seqs = rows.map(({ seq }) => seq);
  let latest = Number.NEGATIVE_INFINITY;
  const times = rows.map(({ time }) => (latest = Math.max(latest, time ?? latest)));
  const seqAt = (time: number): number => between(times, seqs, time);
  if (!byClock) return { byClock, of: ({ seq }) => seq, place: same, seqAt: same, atTime: seqAt };
  const place = (seq: number): number => between(seqs, times, seq);
  return { byClock, of: ({ seq, time }) => time ?? place(seq), place, seqAt, atTime: same };
}

function same(x: number): number {
  return x;
}

/** Whether times tell samples apart; those that came together without timestamps have one time. */
export function tellsApart(rows: Row[]): boolean {
  return rows.length > 1 && 2 * new Set(rows.map(({ time }) => time)).size > rows.length;
}

export function ends(axis: Axis, span: Span): [number, number] {
  const [from, to] = [axis.place(span.from), axis.place(span.to)];
  if (!axis.byClock || to - from >= SHORTEST) return [from, to];
  return [from - SHORTEST / 2, to + SHORTEST / 2];
}

/** What a line through points, which are in rising order, is at x; outside it goes on at its mean slope. */
export function between(at: number[], values: number[], x: number): number {
  const n = at.length;
  const [first, last] = [at[0] ?? 0, at[n - 1] ?? 0];
  if (n === 0) return x;
  if (x < first || x > last || n === 1) {
    const slope = last > first ? ((values[n - 1] as number) - (values[0] as number)) / (last - first) : 1;
    return x < first ? (values[0] as number) + slope * (x - first) : (values[n - 1] as number) + slope * (x - last);
  }
  const right = firstAtLeast(at, x);
  if (right === 0 || at[right] === x) return values[right] as number;
  const share = (x - (at[right - 1] as number)) / ((at[right] as number) - (at[right - 1] as number));
  return (values[right - 1] as number) + share * ((values[right] as number) - (values[right - 1] as number));
}

function firstAtLeast(sorted: number[], x: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A step is a gap when it is so many times as long as is usual. */
const GAP = 10;

/** The places of rows in rising order, and null in between where there is a gap; rows are put in the same order. */
export function placed<T extends Row>(axis: Axis, rows: T[]): { x: number[]; rows: (T | null)[] } {
  const sorted = rows.map((row) => ({ row, x: axis.of(row) })).sort((a, b) => a.x - b.x);
  const longest = axis.byClock ? GAP * usualStep(sorted.map(({ x }) => x)) : Number.POSITIVE_INFINITY;
  const x: number[] = [];
  const found: (T | null)[] = [];
  for (const it of sorted) {
    const last = x.at(-1);
    if (last !== undefined && it.x - last > longest) {
      x.push((last + it.x) / 2);
      found.push(null);
    }
    x.push(it.x);
    found.push(it.row);
  }
  return { x, rows: found };
}

/** The median of the steps that go on. */
function usualStep(x: number[]): number {
  const steps = x.slice(1).map((to, i) => to - (x[i] as number)).filter((step) => step > 0).sort((a, b) => a - b);
  return steps[steps.length >> 1] ?? Number.POSITIVE_INFINITY;
}
