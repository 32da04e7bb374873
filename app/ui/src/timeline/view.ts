// Which part of the stream all charts show, along which axis, and its samples.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { History } from "../answers";
import { useLoaded } from "../hooks";
import { type Row, relabelled, rowsOf } from "../rows";
import { type Query, get, streamPath } from "../service";
import type { StreamState } from "../stream-state";
import { type Axis, axisOf, ends, tellsApart } from "./axis";
import { type Brush, useBrush } from "./brush";
import { type Span, around, liveSpan, oldest, panned, zoomed } from "./span";

const SETTLE_MS = 150;
const NOW_MS = 5000;
const SILENT = 0.05;
const POINTS = 2000;
/** So many samples tell whether the times of a stream tell its samples apart. */
const ENOUGH = 20;

export interface View {
  span: Span;
  /** The span, once it has stood still for a moment; null while it follows the stream. */
  settled: Span | null;
  isLive: boolean;
  axis: Axis;
  /** The places of the left and the right edge; at the right it is now, where the stream has fallen silent. */
  edges: [number, number];
  rows: Row[];
  problem: Error | null;
  pan: (share: number) => void;
  zoom: (factor: number, at?: number) => void;
  /** Follow the newest samples. */
  live: () => void;
  /** Go to the oldest samples. */
  oldest: () => void;
  /** Go to a sample; where it is in view already, nothing moves. */
  show: (seq: number) => void;
  setByClock: (byClock: boolean) => void;
  brush: Brush;
}

export function useView(stream: string, state: StreamState, mayLabel: boolean): View {
  const [kept, setKept] = useState<Span | null>(null);
  const [chosen, setByClock] = useState<boolean | null>(null);
  const newest = state.tail.at(-1)?.seq ?? 0;
  const all = { from: state.description?.oldest_seq ?? 1, to: newest };
  const live = useMemo(() => liveSpan(newest), [newest]);
  const span = kept ?? live;
  const settled = useSettled(kept);
  const { rows, problem } = useRows(stream, state, kept, settled);
  const isClock = useFirst(tellsApart(state.tail), state.tail.length >= ENOUGH);
  const axis = useMemo(() => axisOf(rows, chosen ?? isClock), [rows, chosen ?? isClock]);
  const now = useNow(kept === null && axis.byClock);
  const edges = useMemo(() => edgesOf(axis, span, newest, now), [axis, span, newest, now]);
  const brush = useBrush(axis, span, mayLabel);
  return {
    brush,
    span,
    edges,
    settled,
    isLive: kept === null,
    axis,
    rows,
    problem,
    pan: (share) => setKept((now) => panned(now ?? span, share, all, axis)),
    zoom: (factor, at = 0.5) => setKept((now) => zoomed(now ?? span, factor, at, all, axis)),
    live: () => setKept(null),
    oldest: () => setKept(oldest(span, all)),
    show: (seq) => setKept((now) => moved(now, around(now ?? span, seq, all), span)),
    setByClock,
  };
}

/** What is followed goes on being followed where nothing moves. */
function moved(now: Span | null, to: Span, span: Span): Span | null {
  return now === null && to === span ? null : to;
}

/** The rows of the view: from what is followed where that reaches, and else from the log. */
function useRows(stream: string, state: StreamState, view: Span | null, settled: Span | null): { rows: Row[]; problem: Error | null } {
  const reaches = (span: Span | null): boolean => span === null || span.from >= (state.tail[0]?.seq ?? 1);
  const asked = reaches(settled) ? null : settled;
  const { data, problem } = useLoaded(
    async () => (asked === null ? null : readHistory(stream, asked)),
    [stream, asked?.from, asked?.to],
  );
  const isFollowed = reaches(view);
  const rows = useMemo(
    () => (isFollowed ? state.tail : relabelled(data ?? state.tail, state.labels)),
    [isFollowed, data, state.tail, state.labels],
  );
  return { rows, problem };
}

/** Half a span more on both sides, so that a short drag shows no gap. */
export async function readHistory(stream: string, span: Span, more: Query = {}): Promise<Row[]> {
  const spare = (span.to - span.from) / 2;
  const to = Math.max(1, Math.ceil(span.to + spare));
  const rows: Row[] = [];
  let from: number | null = Math.max(1, Math.floor(span.from - spare));
  while (from !== null) {
    // the service reads so many samples at once, and says where to continue
    const part: History = await get<History>(streamPath(stream, "/history"), { from, to, points: POINTS, ...more });
    rows.push(...rowsOf(part));
    from = part.next;
  }
  return rows;
}

/** The places of the left and the right edge. By the clock they do not leave room for samples to come. */
function edgesOf(axis: Axis, span: Span, newest: number, now: number | null): [number, number] {
  const found = ends(axis, axis.byClock ? { ...span, to: Math.min(span.to, newest) } : span);
  return now === null ? found : untilNow(found, now);
}

/** Edges that show a silence: one of more than a small part of what they show, but of no more than that. */
function untilNow([from, to]: [number, number], now: number): [number, number] {
  const silence = now - to;
  return silence > SILENT * (to - from) && silence <= to - from ? [from, now] : [from, to];
}

/** The time in seconds, now and then; null while nobody wants to know. */
function useNow(isWanted: boolean): number | null {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!isWanted) return;
    const timer = window.setInterval(() => document.hidden || setNow(Date.now() / 1000), NOW_MS);
    return () => window.clearInterval(timer);
  }, [isWanted]);
  return isWanted ? now : null;
}

/** A value once it has stood still for a moment. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), SETTLE_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return settled;
}

/** A value as it is, until it is sure; and from then on as it was when it was sure for the first time. */
function useFirst<T>(value: T, isSure: boolean): T {
  const first = useRef<{ value: T } | null>(null);
  if (isSure) first.current ??= { value };
  return (first.current ?? { value }).value;
}
