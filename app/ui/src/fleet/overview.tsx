// All streams in sum: what is open, what needs a label, when samples were flagged.
import type { StreamSummary, Totals } from "../answers";
import { Card } from "../card";
import { count, duration, plural } from "../format";
import { meaning } from "../severity";
import { streamAddress } from "../service";
import { type Choice, type Order, addressOf } from "./choice";
import { FlagsChart } from "./flags";

const SHOWN = 5;

export function Overview({ totals, choice }: { totals: Totals; choice: Choice }): preact.JSX.Element {
  const tile = (name: string, value: number, order?: Order): preact.JSX.Element => (
    <div class="tile">
      <dt>{order === undefined ? name : <a href={addressOf({ ...choice, order })}>{name}</a>}</dt>
      <dd>{count(value)}</dd>
    </div>
  );
  return (
    <Card title="Overview" name="overview">
      <dl class="tiles">
        {tile("streams", totals.streams, "name")}
        {tile("open incidents", totals.open_incidents, "incidents")}
        {tile("flagged in 24 h", totals.flagged_lately, "flagged")}
        {tile("incidents to review", totals.to_review, "review")}
        {tile("silent for an hour", totals.silent, "silent")}
        {tile("warming up", totals.warming_up, "warming_up")}
        {tile("labels", totals.labels)}
        {tile("samples", totals.samples)}
        {totals.unreadable > 0 && tile("cannot be read", totals.unreadable)}
      </dl>
      {totals.unknown > 0 && <p class="note" role="status">{plural(totals.unknown, "stream")} not read yet since an upgrade or a restore: the sums do without {totals.unknown === 1 ? "it" : "them"}.</p>}
      <div class="halves">
        <FlagsChart begin={totals.begin} flags={totals.flags_by_hour} />
        <div>
          <Few title="Open incidents" none="No incident is open." streams={totals.incidents} more={addressOf({ ...choice, order: "incidents" })} line={Incident} />
          <Few title="To review" none="Nothing is to review." streams={totals.review} more={addressOf({ ...choice, order: "review" })} line={ToReview} />
        </div>
      </div>
    </Card>
  );
}

interface FewProps {
  title: string;
  none: string;
  streams: StreamSummary[];
  more: string;
  line: (stream: StreamSummary) => preact.JSX.Element;
}

/** The first few of a list, and the way to all of it. */
function Few({ title, none, streams, more, line: Line }: FewProps): preact.JSX.Element {
  return (
    <section class="few">
      <h3>{title}</h3>
      {streams.length === 0 && <p class="soft">{none}</p>}
      <ul>{streams.slice(0, SHOWN).map((stream) => <li key={stream.stream}><Line {...stream} /></li>)}</ul>
      {streams.length > SHOWN && <a class="soft" href={more}>all of them</a>}
    </section>
  );
}

function Incident({ stream, incident, incident_begin: begin, incident_severity: severity }: StreamSummary): preact.JSX.Element {
  return (
    <>
      <a class="name" href={streamAddress(stream, incident)}>{stream}</a>
      <span class="soft" title={severity === null ? undefined : meaning(severity)}>
        {severity !== null && `severity ${severity.toFixed(1)}, `}{begin !== null && `for ${duration(Date.now() / 1000 - begin)}`}
      </span>
    </>
  );
}

function ToReview({ stream, to_review: waiting }: StreamSummary): preact.JSX.Element {
  return <><a class="name" href={streamAddress(stream)}>{stream}</a><span class="soft">{plural(waiting ?? 0, "incident")}</span></>;
}
