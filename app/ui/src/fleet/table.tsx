// The streams of a page, one a row.
import type { StreamSummary } from "../answers";
import { count, duration } from "../format";
import { streamAddress } from "../service";
import { meaning } from "../severity";
import { type Choice, ORDERS, type Order } from "./choice";
import { Spark } from "./flags";

interface Props {
  streams: StreamSummary[];
  choice: Choice;
  onOrder: (order: Order) => void;
}

export function StreamTable({ streams, choice, onOrder }: Props): preact.JSX.Element {
  const head = (order: Order, text: string, kind = "n"): preact.JSX.Element => (
    <th scope="col" role="columnheader" class={kind} aria-sort={choice.order !== order ? undefined : order === "name" ? "ascending" : "descending"}>
      <button type="button" class="link" title={`Sort by: ${ORDERS[order]}`} onClick={() => onOrder(order)}>{text}{choice.order === order && <span aria-hidden="true"> {order === "name" ? "▴" : "▾"}</span>}</button>
    </th>
  );
  return (
    <table class="fleet" role="table" onKeyDown={walk}>
      <caption class="hidden">Streams, {ORDERS[choice.order].toLowerCase()} first</caption>
      <thead role="rowgroup">
        <tr role="row">
          {head("name", "stream", "first")}
          {head("flagged", "flagged 24 h")}
          {head("review", "to review")}
          <th scope="col" role="columnheader" class="n wide">samples</th>
          <th scope="col" role="columnheader" class="n wide">labels</th>
          {head("silent", "silent")}
        </tr>
      </thead>
      <tbody role="rowgroup">{streams.map((stream) => <Row key={stream.stream} stream={stream} prefix={choice.prefix} />)}</tbody>
    </table>
  );
}

function Row({ stream, prefix }: { stream: StreamSummary; prefix: string }): preact.JSX.Element {
  const { flagged_lately: flagged, flags_by_hour: flags, silent_seconds: silent } = stream;
  return (
    <tr class="entry" role="row">
      <th scope="row" role="rowheader" class="first">
        <a class="name" href={streamAddress(stream.stream)}>{prefix !== "" && <span class="soft-name">{prefix}</span>}{stream.stream.slice(prefix.length)}</a>
        <State {...stream} />
      </th>
      <td role="cell" class="n" data-name="flagged">{flags !== null && <Spark flags={flags} />} {known(flagged)}</td>
      <td role="cell" class="n" data-name="to review">{known(stream.to_review)}</td>
      <td role="cell" class="n wide">{known(stream.n_seen)}</td>
      <td role="cell" class="n wide">{known(stream.labels)}</td>
      <td role="cell" class="n" data-name="silent">{silent === null ? "–" : duration(silent)}</td>
    </tr>
  );
}

/** What is special about a stream; nothing of one that is ready and in no incident. */
function State({ stream, readable, ready, n_seen: seen, samples_needed: needed, incident, incident_begin: begin, incident_severity: severity }: StreamSummary): preact.JSX.Element | null {
  if (!readable) return <span class="state broken">cannot be read</span>;
  if (ready === null) return <span class="state">not known yet</span>;
  if (!ready) {
    return (
      <span class="state warming">
        warming up, {count(needed ?? 0)} to go <progress value={seen ?? 0} max={(seen ?? 0) + (needed ?? 0)} aria-label={`Warm-up, ${seen} samples of ${(seen ?? 0) + (needed ?? 0)}`} />
      </span>
    );
  }
  if (incident === null) return null;
  return (
    <a class="state broken" href={streamAddress(stream, incident)} title={severity === null ? undefined : meaning(severity)}>
      incident{begin !== null && ` for ${duration(Date.now() / 1000 - begin)}`}{severity !== null && `, severity ${severity.toFixed(1)}`}
    </a>
  );
}

function known(value: number | null): string {
  return value === null ? "–" : count(value);
}

/** Arrow keys go from name to name. */
function walk(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const names = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("a.name")];
  const place = names.indexOf(event.target as HTMLElement);
  if (step === undefined || place < 0) return;
  event.preventDefault();
  names[place + step]?.focus();
}
