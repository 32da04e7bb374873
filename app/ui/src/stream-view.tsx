// The page of one stream.
import { useEffect, useState } from "preact/hooks";
import type { FeatureConfig, Model, Sample, StreamDescription } from "./answers";
import { Card, ErrorNote } from "./card";
import { DensityCard } from "./density/card";
import { count, number, percent, plural } from "./format";
import { useLoaded } from "./hooks";
import { IncidentNote } from "./incident-note";
import { ReviewCard } from "./review/card";
import { useReview } from "./review/review";
import { SampleCard } from "./sample-card";
import { ScoreCard } from "./score/card";
import { type Problem, get, streamPath } from "./service";
import { SignalsCard } from "./signals/card";
import { useShortcuts } from "./shortcuts";
import { type StreamState, useStream } from "./stream-state";
import type { Theme } from "./theme";
import { useView } from "./timeline/view";
import { TreeCard } from "./tree/card";

interface Props {
  stream: string;
  /** The sample to look at first. */
  sample: number | null;
  theme: Theme;
  mayLabel: boolean;
}

export function StreamView({ stream, sample: first, theme, mayLabel }: Props): preact.JSX.Element {
  const state = useStream(stream);
  const { description, version } = state;
  const view = useView(stream, state, mayLabel);
  const [selected, setSelected] = useState<number | null>(first);
  const [relabels, setRelabels] = useState(0);
  // what is looked at is brought into view
  const look = (seq: number | null): void => {
    setSelected(seq);
    if (seq !== null) view.show(seq);
  };
  const isLoaded = state.tail.length > 0;
  useEffect(() => {
    if (isLoaded && first !== null) view.show(first);
  }, [isLoaded]);
  const features = featuresOf(description);
  const model = useLoaded(() => get<Model>("density", { stream, covariances: false }), [stream, version]);
  const looked = useLoaded(
    async () => (selected === null ? null : get<Sample>(streamPath(stream, `/samples/${selected}`))),
    [stream, selected, relabels],
  );
  const sample = looked.data?.seq === selected ? looked.data : null;

  const review = useReview(stream, state, {
    mayLabel,
    named: first,
    isLooking: selected !== null,
    look,
    open: setSelected,
    onLabelled: () => setRelabels((many) => many + 1),
  });
  useShortcuts({
    a: () => review.judge(true),
    n: () => review.judge(false),
    u: review.undo,
    j: () => review.move(1),
    k: () => review.move(-1),
  });

  useEffect(() => {
    document.title = `${stream} · itan`;
  }, [stream]);

  if (description === null) {
    return <Missing stream={stream} problem={state.problem} />;
  }
  return (
    <main class="stream">
      <Head {...{ stream, description, state }} toReview={review.queue.toReview} nodes={model.data?.nodes.length ?? 0} />
      <ErrorNote problem={state.problem} />
      <IncidentNote
        {...{ incident: description.incident, mayLabel, onReview: review.turnTo }}
        item={review.queue.waiting.find(({ incident }) => incident?.incident === description.incident)}
        onNormal={({ subject }) => review.labelling.give(subject, false, null)}
      />
      <div class="columns">
        {description.ready ? (
          <ScoreCard
            {...{ stream, view, theme, selected, onSelect: look }}
            threshold={description.threshold}
            calendarZone={description.config.calendar?.timezone ?? null}
          />
        ) : (
          <WarmUp description={description} />
        )}
        <div class="side">
          <ReviewCard {...{ stream, review, mayLabel, onSelect: look }} />
          <SampleCard
            {...{ sample, features, mayLabel }}
            hasCalendar={description.config.calendar !== null}
            problem={selected === null ? null : looked.problem}
            onLabel={(label) => sample !== null && review.labelling.give({ incident: null, seq: sample.seq }, label, sample.label)}
            onClose={() => setSelected(null)}
          />
        </div>
        <SignalsCard {...{ stream, state, description, features, view, sample, theme, onSelect: look }} />
        {description.ready && <DensityCard {...{ stream, features, version, model: model.data, sample, onSelect: look }} />}
        {description.ready && <TreeCard model={model.data} problem={model.problem} features={features} sample={sample} />}
      </div>
    </main>
  );
}

/** A stream that cannot be shown, or not yet. */
function Missing({ stream, problem }: { stream: string; problem: Problem | null }): preact.JSX.Element {
  return (
    <main class="alone">
      <h1>{stream}</h1>
      <ErrorNote problem={problem} />
      {problem !== null && <p><a href="#/">Go to the list of all streams</a></p>}
    </main>
  );
}

/** Features without names go by their number from 0. */
function featuresOf(description: StreamDescription | null): FeatureConfig[] {
  if (description === null) return [];
  const { features, n_features: many } = description.config;
  return features ?? Array.from({ length: many }, (_, k) => ({ name: String(k), kind: "gaussian", role: "value" }));
}

interface HeadProps {
  stream: string;
  description: StreamDescription;
  state: StreamState;
  /** Incidents without a label. */
  toReview: number;
  nodes: number;
}

function Head({ stream, description, state, toReview, nodes }: HeadProps): preact.JSX.Element {
  const flagged = state.tail.filter((row) => row.isAnomaly).length;
  const { costs } = description;
  return (
    <div class="head">
      <h1>{stream}</h1>
      <dl class="tiles">
        <Tile name="samples" value={count(Math.max(description.next_seq - 1, state.tail.at(-1)?.seq ?? 0))} />
        <Tile name={`flagged of newest ${count(state.tail.length)}`} value={state.tail.length === 0 ? "–" : percent(flagged / state.tail.length)} />
        <Tile name="threshold" value={number(description.threshold)} />
        <Tile name="to review" value={count(toReview)} />
        <Tile name="labels" one="label" value={count(costs.labels)} />
        <Tile name="false alarms" one="false alarm" value={count(costs.false_alarms)} />
        <Tile name="misses" one="miss" value={count(costs.misses)} />
        <Tile name="nodes" one="node" value={count(nodes)} />
      </dl>
    </div>
  );
}

/** A number and its name; one: the name of a single one. */
function Tile({ name, one = name, value }: { name: string; one?: string; value: string }): preact.JSX.Element {
  return <div class="tile" data-tile={name}><dt>{value === "1" ? one : name}</dt><dd>{value}</dd></div>;
}

function WarmUp({ description }: { description: StreamDescription }): preact.JSX.Element {
  const { samples_needed: needed, n_seen: seen } = description;
  const [now, all] = [count(seen), plural(seen + needed, "sample")];
  return (
    <Card title="Score" name="warm-up" caption={`Warming up: ${now} of ${all}. Scores begin when these have fixed the scale of the features.`}>
      <progress value={seen} max={seen + needed} aria-label="Warm-up">{now} of {all}</progress>
    </Card>
  );
}
