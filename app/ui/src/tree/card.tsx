// The tree of subspaces: how the model divides the space, and how much each part weighs.
import { useEffect, useRef, useState } from "preact/hooks";
import type { FeatureConfig, Model, Node, Sample } from "../answers";
import { Card, ErrorNote } from "../card";
import { coordinate } from "../coordinates";
import { count, number, percent, plural } from "../format";
import { useWidth } from "../hooks";
import { type Layout, type Placed, layout } from "./layout";

const NAMED = 8;
const LABELLED_RADIUS = 8;

interface Props {
  model: Model | null;
  problem: Error | null;
  features: FeatureConfig[];
  sample: Sample | null;
}

export function TreeCard({ model, problem, features, sample }: Props): preact.JSX.Element {
  const [host, width] = useWidth();
  const [active, setActive] = useState(0);
  const drawn = model === null || width === 0 ? null : layout(model.nodes, width);
  const node = model?.nodes[active] ?? model?.nodes[0];
  return (
    <Card title="Tree" caption="Each circle is a part of the space with a density of its own. Bigger = more of the model's weight.">
      <ErrorNote problem={problem} />
      <div ref={host} class="scroll tree-plot">
        {drawn !== null && <Drawing drawn={drawn} active={node?.id ?? 0} path={sample?.path ?? []} onActive={setActive} />}
      </div>
      {model !== null && model.nodes.length > 0 && <p class="readout">{summary(model)}{sample?.path && ` The coloured path leads to sample ${count(sample.seq)}.`}</p>}
      {node !== undefined && <p class="note node">{described(node, features)}</p>}
      {model !== null && model.nodes.length > 0 && <NodeTable nodes={model.nodes} />}
    </Card>
  );
}

interface DrawingProps {
  drawn: Layout;
  active: number;
  path: number[];
  onActive: (node: number) => void;
}

/** One node takes part in the tab order; the arrow keys go from it to the others. */
function Drawing({ drawn, active, path, onActive }: DrawingProps): preact.JSX.Element {
  const drawing = useRef<SVGSVGElement>(null);
  const elements = useRef(new Map<number, SVGGElement>());
  const isGrown = useRef(false);
  useEffect(() => {
    isGrown.current = true; // nodes drawn from now on come from a split
    const view = drawing.current?.parentElement;
    if (view) view.scrollLeft = drawn.root.x - view.clientWidth / 2;
  }, []);
  const onKey = (event: KeyboardEvent): void => {
    const to = neighbour(drawn, active, event.key);
    if (to === undefined) return;
    event.preventDefault();
    onActive(to);
    elements.current.get(to)?.focus();
  };
  return (
    <svg ref={drawing} class="tree" width={drawn.width} height={drawn.height} role="group" aria-label="The tree; arrow keys go from node to node" onKeyDown={onKey}>
      {drawn.all.flatMap((parent) => parent.children.map((child) => <Branch key={child.node.id} from={parent} to={child} isOnPath={path.includes(child.node.id)} />))}
      {drawn.all.map((placed) => (
        <Circle
          key={placed.node.id}
          placed={placed}
          isNew={isGrown.current && !elements.current.has(placed.node.id)}
          isActive={placed.node.id === active}
          isOnPath={path.includes(placed.node.id)}
          onActive={onActive}
          keep={(element) => element === null ? elements.current.delete(placed.node.id) : elements.current.set(placed.node.id, element)}
        />
      ))}
    </svg>
  );
}

function Branch({ from, to, isOnPath }: { from: Placed; to: Placed; isOnPath: boolean }): preact.JSX.Element {
  const middle = (from.y + to.y) / 2;
  const path = `M${from.x},${from.y}C${from.x},${middle} ${to.x},${middle} ${to.x},${to.y}`;
  return <path class={isOnPath ? "branch on" : "branch"} d={path} />;
}

interface CircleProps {
  placed: Placed;
  isNew: boolean;
  isActive: boolean;
  isOnPath: boolean;
  onActive: (node: number) => void;
  keep: (element: SVGGElement | null) => void;
}

function Circle({ placed: { node, x, y, radius }, isNew, isActive, isOnPath, onActive, keep }: CircleProps): preact.JSX.Element {
  const activate = (): void => onActive(node.id);
  return (
    <g
      ref={keep}
      class={`node${isNew ? " new" : ""}${isActive ? " active" : ""}${isOnPath ? " on" : ""}`}
      transform={`translate(${x} ${y})`}
      role="img"
      tabindex={isActive ? 0 : -1}
      aria-label={`Node ${node.id}, level ${node.level}: ${percent(node.weight)} of the weight, ${plural(node.count, "sample")}`}
      onFocus={activate}
      onPointerEnter={activate}
      onClick={activate}
    >
      <circle class="target" r={Math.max(radius, 12)} />
      <circle class="disc" r={radius} />
      {radius > LABELLED_RADIUS && <text class="weight" y={4}>{percent(node.weight)}</text>}
      <text class="count" y={radius + 13}>{count(node.count)}</text>
    </g>
  );
}

function neighbour(drawn: Layout, active: number, key: string): number | undefined {
  const here = drawn.all.find(({ node }) => node.id === active);
  if (here === undefined) return undefined;
  if (key === "ArrowUp") return here.node.parent ?? undefined;
  if (key === "ArrowDown") return here.children[0]?.node.id;
  const level = drawn.all.filter(({ node }) => node.level === here.node.level);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  return step === undefined ? undefined : level[level.indexOf(here) + step]?.node.id;
}

function summary({ nodes, n_learned }: Model): string {
  const leaves = nodes.filter((node) => node.leaf).length;
  return `${plural(nodes.length, "node")}, ${leaves} undivided, learned from ${plural(n_learned, "sample")}. Under each circle: samples counted in it.`;
}

function described(node: Node, features: FeatureConfig[]): string {
  const means = features.slice(0, NAMED).map(({ name, kind }, k) => `${name} ${number(coordinate(kind).value(node.mean[k] ?? Number.NaN))}`);
  const more = features.length > NAMED ? ` and ${features.length - NAMED} more` : "";
  return `Node ${node.id}, level ${node.level}${node.leaf ? ", undivided" : ""}: ${percent(node.weight)} of the weight, ${plural(node.count, "sample")}; mean ${means.join(", ")}${more}.`;
}

function NodeTable({ nodes }: { nodes: Node[] }): preact.JSX.Element {
  return (
    <details class="table">
      <summary>The tree as a table</summary>
      <div class="scroll" tabIndex={0} role="group" aria-label="Nodes of the tree">
        <table>
          <thead><tr><th class="n">Node</th><th class="n">Parent</th><th class="n">Level</th><th class="n">Weight</th><th class="n">Samples</th></tr></thead>
          <tbody>
            {nodes.map((node) => (
              <tr key={node.id}><td class="n">{node.id}</td><td class="n">{node.parent ?? "–"}</td><td class="n">{node.level}</td><td class="n">{percent(node.weight)}</td><td class="n">{count(node.count)}</td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
