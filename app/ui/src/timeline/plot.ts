// A uPlot in an element: made anew when what it consists of changes, and else only given new data.
import type { Ref } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useNewest, useWidth } from "../hooks";
import { colour } from "../theme";
import { type Gestures, listen } from "./gestures";

/** The cursors of all charts of one page move together. */
const SYNC = uPlot.sync("charts");

export interface Drawn {
  options: (width: number) => Omit<uPlot.Options, "width" | "cursor">;
  data: () => uPlot.AlignedData;
  gestures: Gestures;
}

/** made: what the plot consists of; drawn: what it draws. Nothing is drawn while it is hidden. */
export function usePlot(drawn: Drawn, made: unknown[], shown: unknown[], isHidden = false): Ref<HTMLDivElement> {
  const [host, width] = useWidth();
  const element = useRef<HTMLDivElement | null>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useNewest(drawn);

  useEffect(() => {
    if (width === 0 || isHidden || element.current === null) return;
    const it = new uPlot({ ...newest.current.options(width), width, cursor: CURSOR }, newest.current.data(), element.current);
    listen(it, newest);
    plot.current = it;
    return () => {
      plot.current = null;
      it.destroy();
    };
  }, [width, isHidden, ...made]);

  useEffect(() => {
    if (!isHidden) plot.current?.setData(newest.current.data());
  }, [isHidden, ...shown]);

  return (it) => {
    element.current = it;
    host(it);
  };
}

const CURSOR: uPlot.Cursor = {
  drag: { x: false, y: false },
  y: false,
  points: { show: false },
  sync: { key: SYNC.key },
};

/** Series of a line that is broken where samples are missing; a value between two of these is a dot. */
export function lineSeries(more: uPlot.Series = {}): uPlot.Series {
  return { stroke: colour("line"), width: 1.5, spanGaps: false, points: { show: true, size: 3, fill: colour("line"), filter: alone }, ...more };
}

function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series] as (number | null | undefined)[];
  return values.flatMap((value, i) => (value != null && values[i - 1] == null && values[i + 1] == null ? [i] : []));
}

