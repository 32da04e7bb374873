// A stretch of the charts that somebody has marked, by pointer or by keys.
import { useEffect, useState } from "preact/hooks";
import { type Axis, ends } from "./axis";
import type { Span } from "./span";

/** From one place of the axis to another. */
export interface Stretch {
  from: number;
  to: number;
}

export interface Brush {
  stretch: Stretch | null;
  /** Whether this visitor may label what is marked. */
  isAllowed: boolean;
  /** Whether dragging marks a stretch also without the Shift key. */
  isOn: boolean;
  setOn: (isOn: boolean) => void;
  /** Mark from where the pointer began to where it is. */
  mark: (from: number, to: number) => void;
  /** Move the end that moves by a share of the view; begin at a sample, or in the middle. */
  extend: (share: number, seq: number | null) => void;
  clear: () => void;
}

interface Marked {
  fixed: number;
  moving: number;
}

export function useBrush(axis: Axis, span: Span, isAllowed: boolean): Brush {
  const [marked, setMarked] = useState<Marked | null>(null);
  const [isOn, setOn] = useState(false);
  useEffect(() => setMarked(null), [axis.byClock]);

  const extend = (share: number, seq: number | null): void => {
    const [left, right] = ends(axis, span);
    const isSeen = seq !== null && seq >= span.from && seq <= span.to;
    const begin = isSeen ? axis.place(seq) : (left + right) / 2;
    setMarked((before) => {
      const { fixed, moving } = before ?? { fixed: begin, moving: begin };
      return { fixed, moving: Math.min(Math.max(moving + share * (right - left), left), right) };
    });
  };
  return {
    stretch: marked === null ? null : { from: Math.min(marked.fixed, marked.moving), to: Math.max(marked.fixed, marked.moving) },
    isAllowed,
    isOn,
    setOn,
    mark: (fixed, moving) => setMarked({ fixed, moving }),
    extend,
    clear: () => setMarked(null),
  };
}
