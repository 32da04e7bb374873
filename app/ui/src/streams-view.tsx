// The list of streams, a page at a time.
import { useEffect, useState } from "preact/hooks";
import type { StreamPage, StreamSummary } from "./answers";
import { ErrorNote } from "./card";
import { count, moment, percent } from "./format";
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
      <p class="caption">Each stream has its own detector, which scores every sample first and then learns it.</p>
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
        <State {...stream} />
        <dl class="tiles">
          <Figure name="samples" value={known(stream.n_seen)} />
          <Figure name="flagged" value={stream.n_flagged === null ? "–" : percent(stream.n_flagged / Math.max(stream.n_seen ?? 0, 1))} />
          <Figure name="labels" value={known(stream.labels)} />
          <Figure name="nodes" value={known(stream.n_nodes)} />
        </dl>
        {stream.newest_time !== null && <span class="soft">newest {moment(stream.newest_time)}</span>}
      </a>
    </li>
  );
}

function State({ readable, ready, n_seen, samples_needed }: StreamSummary): preact.JSX.Element {
  if (!readable) return <span class="state broken">cannot be read</span>;
  if (ready) return <span class="state ready">ready</span>;
  const [seen, needed] = [n_seen ?? 0, samples_needed ?? 0];
  return (
    <span class="state warming">
      warming up, {count(needed)} to go <progress value={seen} max={seen + needed} aria-label={`Warm-up, ${seen} samples of ${seen + needed}`} />
    </span>
  );
}

function known(value: number | null): string {
  return value === null ? "–" : count(value);
}

function Figure({ name, value }: { name: string; value: string }): preact.JSX.Element {
  return <div class="tile"><dt>{name}</dt><dd>{value}</dd></div>;
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
