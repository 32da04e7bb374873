// The samples of the view with the values of their features.
import { useMemo } from "preact/hooks";
import type { History } from "../answers";
import { type Loaded, useLoaded } from "../hooks";
import { type Row, extended, relabelled, rowsOf } from "../rows";
import { type StreamState, newest } from "../stream-state";
import { LIVE_WIDTH } from "../timeline/span";
import { type View, readHistory } from "../timeline/view";

const WITH_VALUES = { values: true };

export function useValues(stream: string, state: StreamState, { settled }: View): { rows: Row[]; problem: Loaded<Row[]>["problem"] } {
  const { data, problem } = useLoaded(
    async () => settled === null ? rowsOf(await newest<History>(stream, LIVE_WIDTH, WITH_VALUES)) : readHistory(stream, settled, WITH_VALUES),
    [stream, settled?.from, settled?.to],
  );
  const isLive = settled === null;
  const rows = useMemo(() => {
    const read = data ?? [];
    if (!isLive) return relabelled(read, state.labels);
    // what came since the page was opened has its values
    return relabelled(extended(read, state.tail.filter(({ values }) => values !== undefined), LIVE_WIDTH), state.labels);
  }, [data, isLive, state.tail, state.labels]);
  return { rows, problem };
}
