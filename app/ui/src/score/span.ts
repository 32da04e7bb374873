// The part of a stream that the score line shows, from one seq to another, and how zooming and panning change it.

export interface Span {
  from: number;
  to: number;
}

export const LIVE_WIDTH = 400;
const NARROWEST = 20;
/** The log of a wider span would take several requests to read. */
const WIDEST = 40_000;

/** Where the line stands when it follows the stream: the newest samples, with some room on a young stream. */
export function liveSpan(newest: number): Span {
  const to = Math.max(newest, LIVE_WIDTH / 4);
  return { from: Math.max(1, to - LIVE_WIDTH + 1), to };
}

/** Zoom round a place (0 = left edge, 1 = right edge); a factor above 1 shows more. */
export function zoomed(span: Span, factor: number, at: number, all: Span): Span {
  const width = span.to - span.from;
  const wanted = Math.min(Math.max(width * factor, NARROWEST), Math.max(all.to - all.from, NARROWEST), WIDEST);
  return within({ from: span.from + (width - wanted) * at, to: span.to + (wanted - width) * (1 - at) }, all);
}

/** Move by a share of the span's width. */
export function panned(span: Span, share: number, all: Span): Span {
  const step = (span.to - span.from) * share;
  return within({ from: span.from + step, to: span.to + step }, all);
}

/** The span of the same width at the stream's beginning. */
export function oldest(span: Span, all: Span): Span {
  return within({ from: all.from, to: all.from + span.to - span.from }, all);
}

/** Push a span back into what there is. */
function within(span: Span, all: Span): Span {
  const width = span.to - span.from;
  const to = Math.max(Math.min(span.to, all.to), all.from + width);
  return { from: to - width, to };
}
