// Values over time with the expected band behind them: uPlot, and a polygon of ours.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { number } from "../format";
import { useNewest, useWidth } from "../hooks";
import { type Theme, colour } from "../theme";
import { type Expected, frameOf } from "./expected";

const HEIGHT = 200;

interface Props {
  expected: Expected;
  theme: Theme;
}

export function ValuesChart(props: Props): preact.JSX.Element {
  const [host, width] = useWidth();
  const element = useRef<HTMLDivElement | null>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useNewest(props);

  useEffect(() => {
    if (width === 0 || element.current === null) return;
    const made = make(width, element.current, newest);
    plot.current = made;
    show(made, newest.current.expected);
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [width, props.theme, props.expected.byTime]);

  useEffect(() => {
    if (plot.current !== null) show(plot.current, props.expected);
  }, [props.expected]);

  return <div class="plot" ref={(it) => { element.current = it; host(it); }} />;
}

function make(width: number, host: HTMLElement, newest: { readonly current: Props }): uPlot {
  return new uPlot(
    {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: newest.current.expected.byTime, range: () => ends(newest.current.expected) },
        y: { range: () => frameOf(newest.current.expected) },
      },
      axes: [axis({ space: 70, size: newest.current.expected.byTime ? 46 : 30 }), axis({ size: 52, values: numbers })],
      series: [
        {},
        { stroke: colour("line"), width: 1, points: { show: true, size: 3, fill: colour("line") } },
        { stroke: colour("flag"), paths: () => null, points: { show: true, size: 8, fill: colour("flag") } },
      ],
      hooks: { drawClear: [(it) => drawBand(it, newest.current.expected)] },
    },
    undefined,
    host,
  );
}

/** Values beyond the frame are drawn at its edge. */
function show(plot: uPlot, expected: Expected): void {
  const [low, high] = frameOf(expected);
  const values = expected.values.map(({ value }) => Math.min(Math.max(value, low), high));
  const flagged = values.map((value, i) => (expected.values[i]?.isAnomaly ? value : null));
  plot.setData([expected.values.map(({ x }) => x), values, flagged]);
}

function ends({ values, band }: Expected): [number, number] {
  const all = [...band.x, ...values.map(({ x }) => x)];
  const [from, to] = [Math.min(...all), Math.max(...all)];
  return to > from ? [from, to] : [from - 1, to + 1];
}

function axis(more: uPlot.Axis): uPlot.Axis {
  const grid = { stroke: colour("grid"), width: 1 };
  return { stroke: colour("ink-soft"), font: "12px system-ui, sans-serif", grid, ticks: { show: false }, ...more };
}

function numbers(_: uPlot, at: number[]): string[] {
  return at.map((value) => (Math.abs(value) >= 1e5 ? number(value) : String(Number(value.toPrecision(6)))));
}

function drawBand(plot: uPlot, { band: { x, low, high } }: Expected): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("band");
  ctx.beginPath();
  const point = (at: number, value: number): void => ctx.lineTo(plot.valToPos(at, "x", true), plot.valToPos(value, "y", true));
  x.forEach((at, i) => point(at, high[i] as number));
  for (let i = x.length - 1; i >= 0; i--) point(x[i] as number, low[i] as number);
  ctx.closePath();
  ctx.fill();
  ctx.restore();
}
