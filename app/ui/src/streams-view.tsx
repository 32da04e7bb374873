// The list of streams: an overview of all, and a page of them in an order.
import { useEffect, useRef, useState } from "preact/hooks";
import type { StreamPage, Totals } from "./answers";
import { ErrorNote } from "./card";
import { ORDERS, type Order, useChoice } from "./fleet/choice";
import { Groups } from "./fleet/groups";
import { Overview } from "./fleet/overview";
import { StreamTable } from "./fleet/table";
import { useLoaded } from "./hooks";
import { get } from "./service";
import { useShortcuts } from "./shortcuts";

const PAGE = 50;
const REFRESH_MS = 4000;
const TYPING_MS = 250;

export function StreamsView(): preact.JSX.Element {
  const [choice, choose] = useChoice();
  const { prefix, search, order } = choice;
  const [pages, setPages] = useState<string[]>([""]);
  const ticks = useTicks();
  const after = pages.at(-1) ?? "";
  const list = useLoaded(
    () => get<StreamPage>("streams", { details: true, limit: PAGE, after: after || undefined, order, prefix: prefix || undefined, search: search || undefined }),
    [after, ticks, prefix, search, order],
  );
  const overview = useLoaded(() => get<Totals>("overview", { prefix: prefix || undefined }), [ticks, prefix]);
  useEffect(() => setPages([""]), [prefix, search, order]);
  useEffect(() => {
    document.title = "itan";
  }, []);
  const { data } = list;
  const isEmpty = overview.data?.streams === 0 && prefix === "" && data?.streams.length === 0 && search === "";
  return (
    <main class="fleet">
      <h1>Streams</h1>
      <p class="caption">Each stream has its own detector, which scores every sample first and then learns it.</p>
      <ErrorNote problem={list.problem ?? overview.problem} />
      {isEmpty && <Empty />}
      {!isEmpty && overview.data !== null && <Overview totals={overview.data} choice={choice} />}
      {!isEmpty && data !== null && (
        <section class="card list" aria-label="List of streams">
          <div class="choice">
            <Search text={search} onSearch={(text) => choose({ search: text })} />
            <label>Sort by <select value={order} onChange={(event) => choose({ order: event.currentTarget.value as Order })}>
              {Object.entries(ORDERS).map(([name, text]) => <option key={name} value={name}>{text}</option>)}
            </select></label>
          </div>
          {overview.data !== null && <Groups choice={choice} groups={overview.data.groups} more={overview.data.more_groups} />}
          {data.streams.length > 0 && <StreamTable streams={data.streams} choice={choice} onOrder={(order) => choose({ order })} />}
          {data.streams.length === 0 && <p class="empty" role="status">No stream has such a name.</p>}
          {(pages.length > 1 || data.next !== null) && (
            <nav class="buttons" aria-label="Pages">
              <button type="button" disabled={pages.length === 1} onClick={() => setPages(pages.slice(0, -1))}>Previous</button>
              <span class="place">page {pages.length}</span>
              <button type="button" disabled={data.next === null} onClick={() => data.next !== null && setPages([...pages, data.next])}>Next</button>
            </nav>
          )}
        </section>
      )}
    </main>
  );
}

/** A field that tells what was typed once the typing pauses; the key / leads to it. */
function Search({ text, onSearch }: { text: string; onSearch: (text: string) => void }): preact.JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  const timer = useRef<number | undefined>(undefined);
  useShortcuts({ "/": () => field.current?.focus() });
  const type = (typed: string): void => {
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onSearch(typed.replaceAll(/[^A-Za-z0-9._:-]/g, "").slice(0, 128)), TYPING_MS);
  };
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return <label>Search <input ref={field} type="search" defaultValue={text} maxLength={128} autocomplete="off" spellcheck={false} onInput={(event) => type(event.currentTarget.value)} /></label>;
}

function Empty(): preact.JSX.Element {
  return (
    <div class="card">
      <p class="empty">No stream yet. The first samples create one:</p>
      <pre tabIndex={0}>{`curl '${location.origin}/observe?stream=web-1' -H 'content-type: application/json' \\\n    -d '{"samples": [{"cpu": 0.31, "latency_ms": 18}]}'`}</pre>
    </div>
  );
}

/** A number that grows while somebody looks. */
function useTicks(): number {
  const [ticks, setTicks] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => document.hidden || setTicks((many) => many + 1), REFRESH_MS);
    return () => window.clearInterval(timer);
  }, []);
  return ticks;
}
