"""The path of a sample: validate, scale, score, decide, learn. Samples of the warm-up wait for its end first.

Samples are scored and decided by what was learned before them, and learned after that. `state.rule` decides: it sees
each score by decide, and each label by label. For another threshold write a Threshold in core/threshold, and let
threshold_of make it where the config names it.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np

from core.arrays import BoolArray, FloatArray
from core.decision.rule import Decisions
from core.density.round import Batch
from core.engine import together
from core.engine.held_out import hold_out
from core.engine.learning import evaluate, learn, remember, surprise
from core.engine.scales import own_scalings, settle, wake
from core.engine.state import DetectorState
from core.records import Records
from core.results import Observation
from core.scaling import Scaling, coordinates, estimated, typical
from core.validation import checked_mask, checked_samples, checked_times
from core.views.explanation import Explanation, explanation_of

SEGMENT_ROWS: Final = 1024
"""Rows scored at a time when no round ends in between."""
OBSERVED: Final = ("seq", "score", "threshold", "severity", "is_anomaly", "ready", "incident", "event")
"""The columns of records that are told."""


def observe(state: DetectorState, X: Any, times: Any, *, held_out: Any, explain: bool) -> Observation:
    """Score, decide and learn samples X (n, m) one after the other, as Detector.observe says."""
    X, time = _checked(state, X, times)
    mask = checked_mask(held_out, len(X))
    explained = [Explanation.empty(state.config.n_features)] if explain else None
    is_one = len(X) == 1 and not explain and mask is None
    records = together.observe([state], [X], time)[0] if is_one else None
    if records is None:
        parts = _parts(state, X, time, explained) if mask is None else _runs(state, X, time, mask, explained)
        records = Records.joined(list(parts), state.config.n_features)
    columns = {name: records.rows[name].copy() for name in OBSERVED}
    explanation = None if explained is None else Explanation.concatenate(explained)
    return Observation(**columns, samples_needed=state.samples_needed, records=records, explanation=explanation)


def score(state: DetectorState, X: Any, times: Any) -> FloatArray:
    """Score samples X (n, m), as Detector.score says; nothing is learned."""
    return np.concatenate([np.zeros(0), *(_scores(state, *part) for part in _segments(state, X, times))])


def log_density(state: DetectorState, X: Any, times: Any) -> FloatArray:
    """Give the log density of samples X (n, m), as Detector.log_density says; nothing is learned."""
    return np.concatenate([np.zeros(0), *(-_surprise(state, *part) for part in _segments(state, X, times))])


def explain(state: DetectorState, X: Any, times: Any) -> Explanation:
    """Explain the scores of samples X (n, m), as Detector.explain says; nothing is learned."""
    parts = [_explanation(state, batch, _scores(state, batch, own)) for batch, own in _segments(state, X, times)]
    return Explanation.concatenate([Explanation.empty(state.config.n_features), *parts])


def _checked(state: DetectorState, X: Any, times: Any, *, learned: bool = True) -> tuple[FloatArray, FloatArray]:
    """Check samples (n, m) and timestamps (n,): a half-life needs all those that are learned, a calendar not all."""
    config = state.config
    X = checked_samples(X, config.n_features, config.features)
    fades, has_calendar = learned and config.half_life_seconds is not None, config.calendar is not None
    return X, checked_times(times, len(X), needed=fades or has_calendar, may_be_nan=has_calendar and not fades)


def _runs(
    state: DetectorState, X: FloatArray, time: FloatArray, held_out: BoolArray, explained: list[Explanation] | None
) -> Iterator[Records]:
    """Yield records of samples (n, m), some of which are held out, in parts: the runs of these and of the others."""
    ends = [*np.flatnonzero(np.diff(held_out)) + 1, len(X)]
    for start, end in pairwise([0, *ends]):
        if not held_out[start]:
            yield from _parts(state, X[start:end], time[start:end], explained)
            continue
        for first in range(start, end, SEGMENT_ROWS):
            part = slice(first, min(first + SEGMENT_ROWS, end))
            yield _hold_out(state, X[part], time[part], explained)


def _hold_out(state: DetectorState, X: FloatArray, time: FloatArray, explained: list[Explanation] | None) -> Records:
    """Score and decide held-out samples (n, m), at least one, and explain those flagged if asked to."""
    records = hold_out(state, X, time)
    flagged = records.is_anomaly
    if explained is not None and flagged.any():
        times = None if state.config.calendar is None else time[flagged]
        explained.append(explain(state, X[flagged], times))
    return records


def _parts(
    state: DetectorState, X: FloatArray, time: FloatArray, explained: list[Explanation] | None
) -> Iterator[Records]:
    """Yield records of samples (n, m), in parts: those that the warm-up needs, then those of each frozen model."""
    start = min(len(X), state.samples_needed)
    if start:
        yield _warm_up(state, X[:start], time[:start])
    while start < len(X):
        size = SEGMENT_ROWS if state.config.learn_from == "labelled_normal" else state.density.room
        size = wake(state, X[start : start + size])
        part = slice(start, start + size)
        yield _pass(state, X[part], time[part], explained)
        settle(state)
        start += size


def _pass(state: DetectorState, X: FloatArray, time: FloatArray, explained: list[Explanation] | None) -> Records:
    """Score, decide, explain if asked to, and learn samples (n, m), no more than the round has room for."""
    batch = evaluate(state, X, time)
    score, decided = _decide(state, batch, X[:, [*state.config.values]])
    flagged = decided.is_anomaly
    state.costs.count(flagged)
    if explained is not None and flagged.any():
        explained.append(_explanation(state, batch.rows(flagged), score[flagged]))
    n_nodes, altered = batch.left.shape[1], batch.learned.shape[1] if batch.any_altered else 0
    records = Records.of(state.next_seq, X, time, n_nodes=n_nodes, altered=altered)
    records.note_decided(score, decided)
    learn(state, batch, records)
    state.next_seq += len(X)
    return records


def _decide(state: DetectorState, batch: Batch, X: FloatArray) -> tuple[FloatArray, Decisions]:
    """Score and decide samples of these values, in parts for each of which what labels add is fixed."""
    plain = surprise(state, batch)
    scores, decided = np.empty(len(X)), []
    start = 0
    while start < len(X):
        part = slice(start, start + state.resemblance.room(len(X) - start))
        x = batch.learned[part]
        scores[part] = state.resemblance.raised(x, plain[part])
        decided.append(state.rule.decide(state.next_seq + start, X[part], scores[part], batch.time[part]))
        ordinary = decided[-1].ordinary
        state.resemblance.note(x[ordinary], plain[part][ordinary] - state.rule.base)
        start = part.stop
    return scores, decided[0] if len(decided) == 1 else Decisions(*map(np.concatenate, zip(*decided, strict=True)))


def _warm_up(state: DetectorState, X: FloatArray, time: FloatArray) -> Records:
    """Keep samples (n, m), no more than are needed; with the last one the warm-up ends."""
    records = Records.of(state.next_seq, X, time)
    state.next_seq += len(X)
    state.warmup = Records.concatenate([state.warmup, records]).compact()
    if not state.samples_needed:
        _end_warmup(state)
    return records


def _end_warmup(state: DetectorState) -> None:
    """Set the scaling; then score and learn each sample as if it came now, with scores for the decision rule alone."""
    config = state.config
    warm = state.warmup.widened(state.density.growth.most_sides, config.n_columns)
    state.start(estimated(warm.x, config.kinds, config.values))
    if config.follows_spread:
        state.unscaled.begin(coordinates(warm.x, config.kinds), state.scaling.location)
    state.density.nodes.expect(*typical(state.scaling.apply(warm.x)))
    settle(state)
    for i in range(len(warm)):
        record = warm[i]
        batch = evaluate(state, record.x, record.time)
        plain, values = surprise(state, batch), record.x[:, [*config.values]]
        state.rule.warm_up(int(record.seq[0]), values, state.resemblance.raised(batch.learned, plain))
        state.resemblance.note(batch.learned, plain - state.rule.base)
        learn(state, batch, record)
        if record.label[0] != 0:
            remember(state, record)
    state.warmup = warm.compact()


def _segments(state: DetectorState, X: Any, times: Any) -> Iterator[tuple[Batch, dict[int, Scaling]]]:
    """Evaluate samples (n, m) that are not learned, a segment at a time; some rows have a scaling of their own."""
    X, time = _checked(state, X, times, learned=False)
    for start in range(0, len(X), SEGMENT_ROWS):
        part = slice(start, start + SEGMENT_ROWS)
        own = own_scalings(state, X[part])
        yield state.density.evaluate(state.columns(X[part], time[part], own), time[part]), own


def _surprise(state: DetectorState, batch: Batch, own: dict[int, Scaling]) -> FloatArray:
    """-log p (n,) of samples that are not learned, some of which have a scaling of their own."""
    plain = surprise(state, batch)
    for row, scaling in own.items():
        plain[row] = scaling.score(batch.Z[row : row + 1], batch.log_p[row : row + 1])[0]
    return plain


def _scores(state: DetectorState, batch: Batch, own: dict[int, Scaling]) -> FloatArray:
    """Scores (n,) of samples that are not learned."""
    return state.resemblance.raised(batch.learned, _surprise(state, batch, own))


def _explanation(state: DetectorState, batch: Batch, score: FloatArray) -> Explanation:
    """Why n samples have these scores (n,)."""
    added, nearest = state.resemblance.added(batch.learned), state.resemblance.nearest_anomaly(batch.learned)
    return explanation_of(state.density, state.scaling, batch.Z, score, added, nearest)
