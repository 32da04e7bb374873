// The list of streams, a page at a time.
import { useEffect, useState } from "preact/hooks";
import type { StreamPage, StreamSummary } from "./answers";
import { ErrorNote } from "./card";
import { count, moment, number, percent } from "./format";
import { useLoaded } from "./hooks";
import { get } from "./service";

const PAGE = 25;
const REFRESH_MS = 4000;

export function StreamsView(): preact.JSX.Element {
  const [pages, setPages] = useState<string[]>([""]);
  const ticks = useTicks();
  const after = pages.at(-1) ?? "";
  const { data, problem } = useLoaded(
    () => get<StreamPage>("streams", { details: true, limit: PAGE, after: after || undefined }),
    [after, ticks],
  );
  useEffect(() => {
    document.title = "itan";
  }, []);
  return (
    <main class="alone">
      <h1>Streams</h1>
      <p class="caption">Each stream is a detector of its own: it scores a sample first, and learns it then.</p>
      <ErrorNote problem={problem} />
      {data !== null && data.streams.length === 0 && <Empty />}
      {data !== null && data.streams.length > 0 && (
        <ul class="streams">{data.streams.map((stream) => <Entry key={stream.stream} {...stream} />)}</ul>
      )}
      {data !== null && (pages.length > 1 || data.next !== null) && (
        <nav class="buttons" aria-label="Pages">
          <button type="button" disabled={pages.length === 1} onClick={() => setPages(pages.slice(0, -1))}>Previous</button>
          <span class="place">page {pages.length}</span>
          <button type="button" disabled={data.next === null} onClick={() => data.next !== null && setPages([...pages, data.next])}>Next</button>
        </nav>
      )}
    </main>
  );
}

function Entry(stream: StreamSummary): preact.JSX.Element {
  return (
    <li>
      <a class="card entry" href={`#/streams/${encodeURIComponent(stream.stream)}`}>
        <span class="name">{stream.stream}</span>
        {stream.ready ? <span class="state ready">ready</span> : <Progress {...stream} />}
        <dl class="tiles">
          <Figure name="samples" value={count(stream.n_seen)} />
          <Figure name="flagged" value={percent(stream.n_seen === 0 ? 0 : stream.n_flagged / stream.n_seen)} />
          <Figure name="labels" value={count(stream.labels)} />
          <Figure name="nodes" value={count(stream.n_nodes)} />
        </dl>
        {stream.newest_timestamp !== null && <span class="soft">newest {moment(stream.newest_timestamp)}</span>}
      </a>
    </li>
  );
}

function Progress({ n_seen: seen, samples_needed: needed }: StreamSummary): preact.JSX.Element {
  return (
    <span class="state warming">
      warming up, {count(needed)} to go <progress value={seen} max={seen + needed} aria-label={`Warm-up, ${number(seen)} samples of ${seen + needed}`} />
    </span>
  );
}

function Figure({ name, value }: { name: string; value: string }): preact.JSX.Element {
  return <div class="tile"><dt>{name}</dt><dd>{value}</dd></div>;
}

function Empty(): preact.JSX.Element {
  return (
    <div class="card">
      <p class="empty">No stream yet. A stream begins with its first samples:</p>
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
