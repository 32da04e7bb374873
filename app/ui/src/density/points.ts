// Recent samples in the plane of two features.
import type { History } from "../answers";
import type { Axis } from "./axis";

export type Mark = "dot" | "flag" | "anomaly";

export interface Dot {
  seq: number;
  x: number;
  y: number;
  mark: Mark;
}

const FLAG = 5;
const CROSS = 4;
const NEAR_PX = 16;

/** Samples that have both features. */
export function pairs(history: History, i: number, j: number): { seq: number; x: number; y: number; mark: Mark }[] {
  return history.seq.flatMap((seq, k) => {
    const [x, y] = [history.values?.[k]?.[i], history.values?.[k]?.[j]];
    if (x === null || x === undefined || y === null || y === undefined) return [];
    const mark = history.label[k] === true ? "anomaly" : history.is_anomaly[k] ? "flag" : "dot";
    return [{ seq, x, y, mark } as const];
  });
}

export function placed(samples: Dot[], x: Axis, y: Axis): Dot[] {
  return samples.map((sample) => ({ ...sample, x: x.place(sample.x), y: y.place(sample.y) }));
}

/** One path for all dots of a kind. */
export function marksPath(dots: Dot[], mark: Mark): string {
  const draw = { dot: point, flag: triangle, anomaly: cross }[mark];
  return dots.filter((dot) => dot.mark === mark).map(draw).join("");
}

export function nearestDot(dots: Dot[], x: number, y: number): Dot | null {
  const far = dots.map((dot) => ({ dot, distance: Math.hypot(dot.x - x, dot.y - y) }));
  const nearest = far.reduce<(typeof far)[number] | null>((a, b) => (a !== null && a.distance <= b.distance ? a : b), null);
  return nearest !== null && nearest.distance <= NEAR_PX ? nearest.dot : null;
}

function point({ x, y }: Dot): string {
  return `M${x.toFixed(1)},${y.toFixed(1)}h0`;
}

function triangle({ x, y }: Dot): string {
  return `M${x.toFixed(1)},${(y - FLAG).toFixed(1)}l${FLAG},${FLAG * 1.8}h${-2 * FLAG}Z`;
}

function cross({ x, y }: Dot): string {
  const start = `${(x - CROSS).toFixed(1)},${(y - CROSS).toFixed(1)}`;
  return `M${start}l${2 * CROSS},${2 * CROSS}m${-2 * CROSS},0l${2 * CROSS},${-2 * CROSS}`;
}
