"""The path of a sample: validate, scale, score, decide, learn. Samples of the warm-up wait for its end first.

Samples are scored and decided by what was learned before them, and learned after that. `state.rule` decides: it sees
each score by decide, and each label by label. For another threshold write a Threshold in core/threshold, and let
threshold_of make it where the config names it.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from core.arrays import FloatArray
from core.density.round import Batch
from core.engine.learning import evaluate, learn, supervise
from core.engine.state import DetectorState
from core.records import Records
from core.results import Observation
from core.scaling import estimated, typical
from core.validation import checked_samples, checked_times
from core.views.explanation import Explanation, explanation_of

SEGMENT_ROWS: Final = 1024
"""Rows scored at a time when no round ends in between."""
OBSERVED: Final = ("seq", "score", "threshold", "severity", "is_anomaly", "ready", "incident", "event")
"""The columns of records that are told."""


def observe(state: DetectorState, X: Any, times: Any, *, explain: bool) -> Observation:
    """Score, decide and learn samples X (n, m) one after the other, as Detector.observe says."""
    X = checked_samples(X, state.config.n_features, state.config.features)
    time = checked_times(times, len(X), needed=state.config.half_life_seconds is not None)
    explained = [Explanation.empty(state.config.n_features)] if explain else None
    records = Records.joined(list(_parts(state, X, time, explained)), state.config.n_features)
    columns = {name: records.rows[name].copy() for name in OBSERVED}
    explanation = None if explained is None else Explanation.concatenate(explained)
    return Observation(**columns, samples_needed=state.samples_needed, records=records, explanation=explanation)


def score(state: DetectorState, X: Any) -> FloatArray:
    """Score samples X (n, m), as Detector.score says; nothing is learned."""
    X = checked_samples(X, state.config.n_features, state.config.features)
    return _scores(state, state.scaling.apply(X))


def explain(state: DetectorState, X: Any) -> Explanation:
    """Explain the scores of samples X (n, m), as Detector.explain says; nothing is learned."""
    X = checked_samples(X, state.config.n_features, state.config.features)
    Z = state.scaling.apply(X)
    return _explanation(state, Z, _scores(state, Z))


def _parts(
    state: DetectorState, X: FloatArray, time: FloatArray, explained: list[Explanation] | None
) -> Iterator[Records]:
    """Yield records of samples (n, m), in parts: those that the warm-up needs, then those of each frozen model."""
    start = min(len(X), state.samples_needed)
    if start:
        yield _warm_up(state, X[:start], time[:start])
    while start < len(X):
        size = SEGMENT_ROWS if state.config.learn_from == "labelled_normal" else state.density.room
        part = slice(start, start + size)
        yield _pass(state, X[part], time[part], explained)
        start += size


def _pass(state: DetectorState, X: FloatArray, time: FloatArray, explained: list[Explanation] | None) -> Records:
    """Score, decide, explain if asked to, and learn samples (n, m), no more than the round has room for."""
    batch = evaluate(state, X, time)
    score, gain = _scores_of(state, batch)
    decided = state.rule.decide(state.next_seq, X, score, time)
    flagged = decided.is_anomaly
    state.costs.count(flagged)
    if explained is not None and flagged.any():
        explained.append(_explanation(state, batch.Z[flagged], score[flagged]))
    n_nodes, altered = batch.left.shape[1], batch.any_altered
    records = Records.of(state.next_seq, X, time, n_nodes=n_nodes, altered=altered)
    records.note_decided(score, gain, decided)
    learn(state, batch, records)
    state.next_seq += len(X)
    return records


def _scores_of(state: DetectorState, batch: Batch) -> tuple[FloatArray, FloatArray]:
    """Scores (n,), and by how much the second model ranks each higher, (n,), which a late label needs to know."""
    log_density, gain = state.supervision.combine(batch)
    return state.scaling.score(batch.Z, log_density), gain


def _warm_up(state: DetectorState, X: FloatArray, time: FloatArray) -> Records:
    """Keep samples (n, m), no more than are needed; with the last one the warm-up ends."""
    records = Records.of(state.next_seq, X, time)
    state.next_seq += len(X)
    state.warmup = Records.concatenate([state.warmup, records]).compact()
    if not state.samples_needed:
        _end_warmup(state)
    return records


def _end_warmup(state: DetectorState) -> None:
    """Fix the scaling; then score and learn each sample as if it came now, with scores for the decision rule alone."""
    warm = state.warmup.widened(state.density.growth.most_sides)
    state.start(estimated(warm.x, state.config.kinds))
    state.density.nodes.expect(*typical(state.scaling.apply(warm.x)))
    for i in range(len(warm)):
        record = warm[i]
        batch = evaluate(state, record.x, record.time)
        state.rule.warm_up(int(record.seq[0]), record.x, _scores_of(state, batch)[0])
        learn(state, batch, record)
        if record.label[0] != 0:
            supervise(state, record, 0)
    state.warmup = warm.compact()


def _scores(state: DetectorState, Z: FloatArray) -> FloatArray:
    """Scores (n,) of scaled samples (n, m), a segment at a time."""
    segments = [Z[start : start + SEGMENT_ROWS] for start in range(0, len(Z), SEGMENT_ROWS)]
    parts = [state.scaling.score(segment, state.supervision.log_density(segment)) for segment in segments]
    return np.concatenate([np.zeros(0), *parts])


def _explanation(state: DetectorState, Z: FloatArray, score: FloatArray) -> Explanation:
    """Why scaled samples (n, m) have these scores (n,)."""
    return explanation_of(state.supervision.models(), state.scaling, Z, score)
