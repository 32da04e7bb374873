// The tree's cuts in the plane of two features: a slice through the space of all of them.
import type { Hyperplane, Model } from "../answers";

export type Point = [number, number];

export interface Cut {
  node: number;
  ends: [Point, Point];
  /** How much of the cut's direction lies in the plane, 0 to 1. */
  share: number;
}

export interface Slice {
  cuts: Cut[];
  /** The polygon of each node that the slice meets. */
  regions: Map<number, Point[]>;
}

/** Cut a rectangle as the tree does; at holds the coordinates of the features that are not shown. */
export function slice(model: Model, i: number, j: number, at: number[], rectangle: Point[]): Slice {
  const regions = new Map([[0, rectangle]]);
  const cuts: Cut[] = [];
  for (const plane of byParent(model)) {
    const region = regions.get(plane.node);
    if (region === undefined) continue;
    const side = sideOf(plane, i, j, at);
    const ends = crossings(region, side);
    if (ends !== null) cuts.push({ node: plane.node, ends, share: shareOf(plane, i, j, model.scaling?.scale ?? []) });
    keep(regions, plane.left, clipped(region, side));
    keep(regions, plane.right, clipped(region, (point) => -side(point)));
  }
  return { cuts, regions };
}

/** Parents before children, so that each region is cut after it was made. */
function byParent(model: Model): Hyperplane[] {
  const level = (node: number): number => model.nodes[node]?.level ?? 0;
  return [...model.hyperplanes].sort((a, b) => level(a.node) - level(b.node));
}

/** How far a point of the plane lies on the left side of a cut. */
function sideOf({ normal, offset }: Hyperplane, i: number, j: number, at: number[]): (point: Point) => number {
  const rest = normal.reduce((sum, part, k) => (k === i || k === j ? sum : sum + part * (at[k] ?? 0)), -offset);
  return ([x, y]) => (normal[i] ?? 0) * x + (normal[j] ?? 0) * y + rest;
}

function shareOf({ normal }: Hyperplane, i: number, j: number, scale: number[]): number {
  const parts = normal.map((part, k) => (part * (scale[k] ?? 1)) ** 2);
  const all = parts.reduce((sum, part) => sum + part, 0);
  return all > 0 ? ((parts[i] ?? 0) + (parts[j] ?? 0)) / all : 0;
}

function keep(regions: Map<number, Point[]>, node: number, polygon: Point[]): void {
  if (polygon.length > 2) regions.set(node, polygon);
}

/** The part of a convex polygon where side is at least 0 (Sutherland and Hodgman). */
function clipped(polygon: Point[], side: (point: Point) => number): Point[] {
  return edges(polygon).flatMap(([a, b]) => {
    const kept = side(a) >= 0 ? [a] : [];
    return side(a) >= 0 === side(b) >= 0 ? kept : [...kept, crossing(a, b, side)];
  });
}

function crossings(polygon: Point[], side: (point: Point) => number): [Point, Point] | null {
  const crossed = edges(polygon).filter(([a, b]) => side(a) >= 0 !== side(b) >= 0);
  const [p, q] = crossed.map(([a, b]) => crossing(a, b, side));
  return p === undefined || q === undefined ? null : [p, q];
}

function crossing(a: Point, b: Point, side: (point: Point) => number): Point {
  const t = side(a) / (side(a) - side(b));
  return [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])];
}

function edges(polygon: Point[]): [Point, Point][] {
  return polygon.map((point, k) => [point, polygon[(k + 1) % polygon.length] as Point]);
}
