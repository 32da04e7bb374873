// The part of a stream that the charts show, from one seq to another, and how zooming and panning change it.
import { type Axis, ends } from "./axis";

export interface Span {
  from: number;
  to: number;
}

export const LIVE_WIDTH = 400;
const NARROWEST = 20;
/** The log of a wider span would take several requests to read. */
const WIDEST = 40_000;

/** Where the charts stand when they follow the stream: the newest samples, with some room on a young stream. */
export function liveSpan(newest: number): Span {
  const to = Math.max(newest, LIVE_WIDTH / 4);
  return { from: Math.max(1, to - LIVE_WIDTH + 1), to };
}

/** Zoom round a place (0 = left edge, 1 = right edge); a factor above 1 shows more. */
export function zoomed(span: Span, factor: number, at: number, all: Span, axis: Axis): Span {
  const width = span.to - span.from;
  const wanted = Math.min(Math.max(width * factor, NARROWEST), Math.max(all.to - all.from, NARROWEST), WIDEST);
  const [left, right] = ends(axis, span);
  const share = width > 0 ? Math.min(Math.max((axis.seqAt(left + at * (right - left)) - span.from) / width, 0), 1) : at;
  return within({ from: span.from + (width - wanted) * share, to: span.to + (wanted - width) * (1 - share) }, all);
}

/** Move by a share of what the charts are wide. */
export function panned(span: Span, share: number, all: Span, axis: Axis): Span {
  const [left, right] = ends(axis, span);
  const [first, last] = ends(axis, all);
  const wanted = share * (right - left);
  const step = wanted < 0 ? Math.max(wanted, Math.min(first - left, 0)) : Math.min(wanted, Math.max(last - right, 0));
  const from = axis.seqAt(left + step);
  return { from, to: Math.min(axis.seqAt(right + step), from + WIDEST) };
}

/** The span of the same width at the stream's beginning. */
export function oldest(span: Span, all: Span): Span {
  return within({ from: all.from, to: all.from + span.to - span.from }, all);
}

/** The span of the same width round a sample; the same span, if it shows the sample already. */
export function around(span: Span, seq: number, all: Span): Span {
  if (seq >= span.from && seq <= span.to) return span;
  const half = Math.max(span.to - span.from, NARROWEST) / 2;
  return within({ from: seq - half, to: seq + half }, all);
}

/** Push a span back into what there is. */
function within(span: Span, all: Span): Span {
  const width = span.to - span.from;
  const to = Math.max(Math.min(span.to, all.to), all.from + width);
  return { from: to - width, to };
}
