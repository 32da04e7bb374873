// One signal: the name of a feature, what it is and should be, and its chart.
import { useEffect, useMemo } from "preact/hooks";
import { number } from "../format";
import type { Row } from "../rows";
import { type Edges, type Context, edgesOf, expectedAt, hasBand, isOutside, useBand } from "./band";
import { type ChartProps, SignalChart } from "./chart";
import { useOnScreen } from "./on-screen";

interface Props extends Omit<ChartProps, "edges" | "isHidden"> {
  stream: string;
  context: Context;
  rows: Row[];
  /** The sample whose value is told. */
  told: Row | null;
  isReady: boolean;
  /** The band is read again when one of them changes. */
  bandKeys: unknown[];
  onEdges: (feature: string, edges: Edges | null) => void;
}

export function SignalItem(props: Props): preact.JSX.Element {
  const { stream, signal, context, rows, view, told, isReady, bandKeys, onEdges } = props;
  const [item, isOn] = useOnScreen();
  const { data } = useBand(stream, signal.name, context, rows, isReady && isOn && hasBand(signal), bandKeys);
  const edges = useMemo(() => (data === null ? null : edgesOf(data, view.axis, context)), [data, view.axis, context]);
  useEffect(() => onEdges(signal.name, edges), [edges]);
  return (
    <li class="signal" ref={item}>
      <div class="signal-head">
        <h3 title={signal.name}>{signal.name}{signal.role === "context" && <span class="soft"> (context)</span>}</h3>
        <Reading row={told} k={signal.k} expected={told === null || edges === null ? null : expectedAt(edges, view.axis.of(told))} />
      </div>
      <SignalChart {...props} edges={edges} isHidden={!isOn} />
    </li>
  );
}

function Reading({ row, k, expected }: { row: Row | null; k: number; expected: { low: number; high: number } | null }): preact.JSX.Element | null {
  if (row === null) return null;
  const value = row.values?.[k] ?? null;
  const isOut = value !== null && isOutside(value, expected);
  return (
    <p class="reading">
      <b class={isOut ? "out" : undefined}>{value === null ? "missing" : number(value)}</b>
      {expected !== null && <span class="soft"> expected {number(expected.low)} to {number(expected.high)}</span>}
    </p>
  );
}
