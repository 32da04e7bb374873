// The density of two features: contours, the tree's cuts, and recent samples on top.
import { useMemo } from "preact/hooks";
import type { FeatureConfig, Grid, History, Model, Sample } from "../answers";
import { coordinate } from "../coordinates";
import { number, shortened } from "../format";
import { Axis } from "./axis";
import { contourPaths } from "./contours";
import { type Dot, marksPath, nearestDot, pairs, placed } from "./points";
import { type Point, type Slice, slice } from "./regions";

const HEIGHT = 340;
const MARGIN = { left: 58, right: 12, top: 10, bottom: 42 };
const LEAST_SHARE = 0.02;
const FAINTEST = 0.15;

interface Props {
  width: number;
  grid: Grid;
  history: History;
  model: Model | null;
  features: FeatureConfig[];
  i: number;
  j: number;
  sample: Sample | null;
  describedBy: string;
  onSelect: (seq: number) => void;
}

interface Drawing {
  x: Axis;
  y: Axis;
  areas: string[];
  dots: Dot[];
}

export function DensityPlot(props: Props): preact.JSX.Element {
  const { width, grid, history, model, features, i, j, sample } = props;
  const { x, y, areas, dots } = useMemo(() => draw(props), [width, grid, history, i, j, sample]);
  const cut = model === null ? null : sliced(model, features, i, j, sample, x, y);
  const pick = (event: MouseEvent): void => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const dot = nearestDot(dots, event.clientX - box.left, event.clientY - box.top);
    if (dot !== null) props.onSelect(dot.seq);
  };
  return (
    <svg class="density-plot" width={width} height={HEIGHT} role="img" aria-describedby={props.describedBy} aria-label={`Density over ${features[i]?.name} and ${features[j]?.name}`} onClick={pick}>
      <Axes {...{ x, y, width }} names={[features[i]?.name ?? "", features[j]?.name ?? ""]} />
      <svg x={MARGIN.left} y={MARGIN.top} width={width - MARGIN.left - MARGIN.right} height={HEIGHT - MARGIN.top - MARGIN.bottom} viewBox={`${MARGIN.left} ${MARGIN.top} ${width - MARGIN.left - MARGIN.right} ${HEIGHT - MARGIN.top - MARGIN.bottom}`}>
        {areas.map((path, level) => <path key={level} class="area" d={path} />)}
        {cut !== null && <Cuts cut={cut} x={x} y={y} path={sample?.path ?? null} />}
        <path class="dots" d={marksPath(dots, "dot")} />
        <path class="flags" d={marksPath(dots, "flag")} />
        <path class="crosses" d={marksPath(dots, "anomaly")} />
        <Looked sample={sample} names={[features[i]?.name ?? "", features[j]?.name ?? ""]} x={x} y={y} />
      </svg>
    </svg>
  );
}

function draw({ width, grid, history, features, i, j, sample }: Props): Drawing {
  const x = new Axis(grid.x_values, features[i]?.kind ?? "", MARGIN.left, width - MARGIN.right);
  const y = new Axis(grid.y_values, features[j]?.kind ?? "", HEIGHT - MARGIN.bottom, MARGIN.top);
  const samples = pairs(history, i, j);
  const looked = [valueOf(sample, features[i]?.name), valueOf(sample, features[j]?.name)];
  x.stretch([...samples.map((it) => it.x), ...(looked[0] ?? [])]);
  y.stretch([...samples.map((it) => it.y), ...(looked[1] ?? [])]);
  return { x, y, areas: contourPaths(grid, x, y), dots: placed(samples, x, y) };
}

function valueOf(sample: Sample | null, name: string | undefined): number[] {
  const value = name === undefined ? null : sample?.values[name];
  return value === null || value === undefined ? [] : [value];
}

/** The tree's cuts where the other features are at the sample's values, or at their means. */
function sliced(model: Model, features: FeatureConfig[], i: number, j: number, sample: Sample | null, x: Axis, y: Axis): Slice {
  const mean = model.nodes[0]?.mean ?? [];
  const at = features.map(({ name, kind }, k) => {
    const value = sample?.values[name];
    return value === null || value === undefined ? (mean[k] ?? 0) : coordinate(kind).of(value);
  });
  const [[left, right], [bottom, top]] = [x.ends, y.ends];
  return slice(model, i, j, at, [[left, bottom], [right, bottom], [right, top], [left, top]]);
}

function Cuts({ cut, x, y, path }: { cut: Slice; x: Axis; y: Axis; path: number[] | null }): preact.JSX.Element {
  const pixels = (points: Point[]): string => points.map(([u, v]) => `${x.pixelOf(u).toFixed(1)},${y.pixelOf(v).toFixed(1)}`).join(" ");
  const region = path === null ? undefined : cut.regions.get(path.at(-1) ?? -1);
  return (
    <g>
      {region !== undefined && path !== null && path.length > 1 && <polygon class="region" points={pixels(region)} />}
      {cut.cuts.filter(({ share }) => share >= LEAST_SHARE).map(({ node, ends, share }) => (
        <polyline key={node} class="cut" points={pixels(ends)} opacity={FAINTEST + (1 - FAINTEST) * share} />
      ))}
    </g>
  );
}

/** A ring round the sample being looked at. */
function Looked({ sample, names, x, y }: { sample: Sample | null; names: [string, string]; x: Axis; y: Axis }): preact.JSX.Element | null {
  const [[u], [v]] = [valueOf(sample, names[0]), valueOf(sample, names[1])];
  if (u === undefined || v === undefined) return null;
  return <circle class="looked" cx={x.place(u)} cy={y.place(v)} r={9} />;
}

function Axes({ x, y, width, names }: { x: Axis; y: Axis; width: number; names: [string, string] }): preact.JSX.Element {
  const [bottom, right] = [HEIGHT - MARGIN.bottom, width - MARGIN.right];
  return (
    <g class="axes">
      <rect class="ground" x={MARGIN.left} y={MARGIN.top} width={Math.max(0, right - MARGIN.left)} height={bottom - MARGIN.top} />
      {x.ticks().map(({ at, value }) => (
        <text key={value} x={at} y={bottom + 16} text-anchor="middle">{tick(value)}</text>
      ))}
      {y.ticks().map(({ at, value }) => (
        <text key={value} x={MARGIN.left - 6} y={at + 4} text-anchor="end">{tick(value)}</text>
      ))}
      <text class="name" x={(MARGIN.left + right) / 2} y={HEIGHT - 6} text-anchor="middle">{shortened(names[0])} →</text>
      <text class="name" transform={`translate(12 ${(MARGIN.top + bottom) / 2}) rotate(-90)`} text-anchor="middle">{shortened(names[1])} →</text>
    </g>
  );
}

function tick(value: number): string {
  return Math.abs(value) >= 1e5 ? number(value) : String(Number(value.toPrecision(6)));
}
