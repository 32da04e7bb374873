// What the axes of the charts say at their ticks.
import type uPlot from "uplot";
import { number } from "../format";
import { colour } from "../theme";

const MINUTE = 60;
const DAY = 86_400;
const MONTH = 28 * DAY;
const MOST_DECADES = 4;
/** Room at the right for half of the last tick's text. */
export const RIGHT_PX = 28;

/** The timezone in which the page shows times: that of the browser. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const written = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat => new Intl.DateTimeFormat("en-GB", options);
const CLOCK = written({ hour: "2-digit", minute: "2-digit" });
const SECONDS = written({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = written({ day: "numeric", month: "short" });
const YEAR = written({ month: "short", year: "numeric" });

/** Times at ticks so many seconds apart; the date stands below the first tick of each day. */
export function times(at: number[], apart: number): string[] {
  if (apart >= DAY) return at.map((seconds) => (apart >= MONTH ? YEAR : DATE).format(seconds * 1000));
  const clock = apart < MINUTE ? SECONDS : CLOCK;
  const dates = at.map((seconds) => DATE.format(seconds * 1000));
  return at.map((seconds, i) => `${clock.format(seconds * 1000)}${dates[i] === dates[i - 1] ? "" : `\n${dates[i]}`}`);
}

/** The axis along the bottom, by the clock or by the numbers of samples; without labels it is only a grid. */
export function bottomAxis(byClock: boolean, isLabelled = true): uPlot.Axis {
  if (!isLabelled) return axis({ size: 0, space: 70, values: () => [] });
  if (!byClock) return axis({ size: 30, space: 70, values: (_, at) => at.map(whole) });
  return axis({ size: 44, space: 70, values: (_, at, _axis, _space, apart) => times(at, apart) });
}

/** The axis of values on the left. */
export function leftAxis(more: uPlot.Axis = {}): uPlot.Axis {
  return axis({ size: 52, values: (_, at) => at.map(short), ...more });
}

/** The axis of a logarithmic frame: powers of ten, or their 1, 2 and 5 where only one of these is in sight. */
export function logAxis(): uPlot.Axis {
  return leftAxis({ splits: (_plot, _axis, low, high) => decades(low, high) });
}

function decades(low: number, high: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const powers = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
  const inside = (values: number[]): number[] => values.filter((value) => value >= low && value <= high);
  const shown = inside(powers);
  const every = Math.ceil(shown.length / MOST_DECADES);
  return shown.length > 1 ? shown.filter((_, i) => i % every === 0) : inside(powers.flatMap((power) => [power, 2 * power, 5 * power]));
}

function axis(more: uPlot.Axis): uPlot.Axis {
  const grid = { stroke: colour("grid"), width: 1 };
  return { stroke: colour("ink-soft"), font: "12px system-ui, sans-serif", grid, ticks: { show: false }, ...more };
}

function whole(seq: number): string {
  return Number.isInteger(seq) && seq > 0 ? seq.toLocaleString("en") : "";
}

function short(value: number | null): string {
  if (value === null) return "";
  return Math.abs(value) >= 1e5 ? number(value) : String(Number(value.toPrecision(6)));
}
