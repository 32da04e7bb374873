// What is under review: an incident or a close call, with its values, so that nobody labels a mere number.
import { useState } from "preact/hooks";
import type { History, Incident, ReviewSample } from "../answers";
import { ErrorNote } from "../card";
import { count, measured, moment, number, plural } from "../format";
import { useLoaded } from "../hooks";
import { sentence } from "../reasons";
import { rowsOf } from "../rows";
import { get, streamPath } from "../service";
import { meaning } from "../severity";
import type { Item } from "./queue";

const TOP = 3;
const MOST_VALUES = 5;
const MOST_SAMPLES = 200;

interface Props {
  item: Item;
  onSelect: (seq: number) => void;
}

export function UnderReview({ item: { incident, closeCall }, onSelect }: Props): preact.JSX.Element {
  return (
    <div class="current">
      {incident !== null && <IncidentItem {...{ incident, onSelect }} />}
      {closeCall !== null && <CloseCall sample={closeCall} onSelect={onSelect} />}
    </div>
  );
}

const TAGS: Record<string, string> = { open: "open", closed: "over", accepted: "over, taken as the new normal" };

function IncidentItem({ incident, onSelect }: { incident: Incident; onSelect: (seq: number) => void }): preact.JSX.Element {
  return (
    <>
      <Title name={`Incident ${count(incident.incident)}`} tag={TAGS[incident.state] ?? incident.state} />
      <p class="soft">{during(incident)} · {plural(incident.n_flagged, "flagged sample")}, peak at <SampleLink seq={incident.peak_seq} onSelect={onSelect} /></p>
      <p>{meaning(incident.peak_severity)}</p>
      <ul class="causes">
        {incident.features.slice(0, TOP).map((feature) => (
          <li key={feature.name}><b>{feature.name}</b> {sentence(feature, true, "at the time")}</li>
        ))}
      </ul>
    </>
  );
}

/** From when to when; the day is said once. */
function during({ begin, last_time: last, ended_at: ended }: Incident): string {
  const [day, from] = [new Date(begin * 1000), moment(begin)];
  if (ended === null) return `since ${from}`;
  if (last === begin) return from;
  const to = new Date(last * 1000);
  return `${from} to ${day.toDateString() === to.toDateString() ? to.toLocaleTimeString("en-GB") : moment(last)}`;
}

function CloseCall({ sample, onSelect }: { sample: ReviewSample; onSelect: (seq: number) => void }): preact.JSX.Element {
  const values = Object.entries(sample.values);
  const shown = values.slice(0, MOST_VALUES).map(([name, value]) => `${name} ${value === null ? "missing" : measured(value)}`);
  const rest = values.length - shown.length;
  return (
    <>
      <Title name={`Sample ${count(sample.seq)}`} tag="close call" />
      <p class="soft">{[sample.id, moment(sample.time)].filter(Boolean).join(" · ")} <SampleLink seq={sample.seq} onSelect={onSelect} /></p>
      <p>Not flagged. {meaning(sample.severity)}</p>
      <p>{shown.join(", ")}{rest > 0 && ` and ${plural(rest, "more value")}`}</p>
    </>
  );
}

function Title({ name, tag }: { name: string; tag: string }): preact.JSX.Element {
  return <div class="title"><h3>{name}</h3> <span class={`tag ${tag === "open" ? "flagged" : ""}`}>{tag}</span></div>;
}

function SampleLink({ seq, onSelect }: { seq: number; onSelect: (seq: number) => void }): preact.JSX.Element {
  return <button type="button" class="link" onClick={() => onSelect(seq)}>sample {count(seq)}</button>;
}

/** The flagged samples of an incident on demand: each can be looked at, and labelled by itself. */
export function Samples({ stream, incident, onSelect }: { stream: string; incident: Incident; onSelect: (seq: number) => void }): preact.JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { data, problem } = useLoaded(
    async () => (isOpen ? readFlagged(stream, incident) : []),
    [isOpen, incident.id, incident.last_seq],
  );
  return (
    <details class="table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Its samples, one by one</summary>
      <ErrorNote problem={problem} />
      <ul class="samples">
        {(data ?? []).map(({ seq, severity }) => (
          <li key={seq}><SampleLink seq={seq} onSelect={onSelect} /> <span class="soft">severity {number(severity)}</span></li>
        ))}
      </ul>
    </details>
  );
}

async function readFlagged(stream: string, { incident, last_seq: to }: Incident): Promise<{ seq: number; severity: number | null }[]> {
  const history = await get<History>(streamPath(stream, "/history"), { from: incident, to, points: MOST_SAMPLES });
  return rowsOf(history).filter((row) => row.isAnomaly);
}
