// The place of each node of the tree: leaves side by side, parents over the middle of their children.
import type { Node } from "../answers";

export interface Placed {
  node: Node;
  x: number;
  y: number;
  radius: number;
  children: Placed[];
}

export interface Layout {
  root: Placed;
  all: Placed[];
  width: number;
  height: number;
}

const CLOSEST = 36;
const WIDEST = 120;
const LEVEL = 62;
const TOP = 30;
const SMALLEST = 4;
const LARGEST = 22;

/** Lay out for a width; a tree of many leaves is wider and is scrolled. */
export function layout(nodes: Node[], available: number): Layout | null {
  const children = new Map<number | null, Node[]>();
  for (const node of nodes) children.set(node.parent, [...(children.get(node.parent) ?? []), node]);
  const root = children.get(null)?.[0];
  if (root === undefined) return null;
  const leaves = nodes.filter((node) => node.leaf).length;
  const gap = Math.min(Math.max(available / leaves, CLOSEST), WIDEST);
  const width = Math.max(available, gap * leaves);
  const all: Placed[] = [];
  let next = (width - gap * leaves) / 2 + gap / 2;

  const place = (node: Node): Placed => {
    const below = (children.get(node.id) ?? []).map(place);
    const x = below.length > 0 ? below.reduce((sum, child) => sum + child.x, 0) / below.length : next;
    if (below.length === 0) next += gap;
    const radius = SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(node.weight);
    const placed = { node, x, y: TOP + node.level * LEVEL, radius, children: below };
    all.push(placed);
    return placed;
  };

  const placed = place(root);
  all.sort((a, b) => a.y - b.y || a.x - b.x);
  return { root: placed, all, width, height: Math.max(...all.map((it) => it.y)) + LEVEL - 16 };
}
