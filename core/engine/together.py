"""One sample for each of many detectors: the path of a sample, with numpy called once for all of them.

What is said of a sample, and the state afterwards, are those of sample_path to the last bit. What would take more is
left to it: detectors that warm up, have context or features of other kinds, and samples with a missing value or so far
out that they are drawn in.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import compress
from math import isfinite, isnan

import numpy as np

from core.arrays import FloatArray
from core.decision.rule import Decision, Decisions
from core.density.round import Batch
from core.density.stack import evaluate_each
from core.engine.scales import settle
from core.engine.state import DetectorState
from core.records import Records
from core.records.layout import LEARNED, NOT_LEARNED
from core.scaling import LIMIT
from core.validation import LATEST


def observe(states: Sequence[DetectorState], samples: Sequence[FloatArray], times: FloatArray) -> list[Records | None]:
    """Score, decide and learn a sample (1, m) for each state, all different, with timestamps (S,), NaN for none.

    Gives the record of each, or None where nothing has changed: that state has to observe its sample alone.
    """
    found: list[Records | None] = [None] * len(states)
    for places in _alike(states, samples, times):
        X = samples[places[0]] if len(places) == 1 else np.concatenate([samples[place] for place in places])
        _observe_alike([states[place] for place in places], X, times[places], places, found)
    return found


def _alike(states: Sequence[DetectorState], samples: Sequence[FloatArray], times: FloatArray) -> list[list[int]]:
    """The places of those that may be stacked, by the shapes of their models."""
    alike: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, (state, x, time) in enumerate(zip(states, samples, times.tolist(), strict=True)):
        if state.ready and not state.unscaled.any and _is_plain(state, x, time):
            shape = state.density.stack_shape
            if shape is not None:
                alike[shape].append(place)
    return list(alike.values())


def _is_plain(state: DetectorState, x: FloatArray, time: float) -> bool:
    """Whether a sample is valid as it is, and misses nothing."""
    if x.shape != (1, state.config.n_features) or x.dtype != np.float64 or not isfinite(np.vdot(x, x)):
        return False
    return state.config.half_life_seconds is None if isnan(time) else abs(time) <= LATEST


def _observe_alike(
    states: list[DetectorState], X: FloatArray, time: FloatArray, places: list[int], found: list[Records | None]
) -> None:
    """Observe a sample (S, m) for each state; put the record of each to its place in found."""
    Z = _scaled(states, X)
    batch, holds = evaluate_each([state.density for state in states], Z, time)
    holds &= (np.abs(Z) < LIMIT).all(1)
    if not holds.all():
        kept = holds.tolist()
        states, places = list(compress(states, kept)), list(compress(places, kept))
        batch, X = batch.rows(holds), X[holds]
    if states:
        records = _passed(states, batch, X)
        for row, place in enumerate(places):
            found[place] = Records(records.rows[row : row + 1])


def _scaled(states: list[DetectorState], X: FloatArray) -> FloatArray:
    location, scale = (
        np.concatenate([getattr(state.scaling, name) for state in states]).reshape(X.shape)
        for name in ("location", "scale")
    )
    with np.errstate(over="ignore"):
        Z: FloatArray = (X - location) / scale
    np.maximum(Z, -LIMIT, out=Z)
    return np.minimum(Z, LIMIT, out=Z)


def _passed(states: list[DetectorState], batch: Batch, X: FloatArray) -> Records:
    """Score, decide and learn evaluated samples (S, m), each for its state."""
    plain = np.array([state.scaling.log_volume for state in states]) - batch.log_p
    seqs = [state.next_seq for state in states]
    columns = zip(states, X.tolist(), plain.tolist(), batch.time.tolist(), strict=True)
    told = [_pass(state, batch, row, x, score, time) for row, (state, x, score, time) in enumerate(columns)]
    scores, decided, ordinals = zip(*told, strict=True)
    records = Records.empty(len(states), X.shape[1], 0)
    rows = records.rows
    rows["seq"], rows["x"], rows["time"], rows["ordinal"] = seqs, X, batch.time, ordinals
    rows["status"] = np.where(rows["ordinal"] > 0, LEARNED, NOT_LEARNED)
    records.note_decided(np.array(scores), Decisions.of(decided))
    return records


def _pass(
    state: DetectorState, batch: Batch, row: int, x: list[float], plain: float, time: float
) -> tuple[float, Decision, int]:
    """Decide and learn one of the samples: its score, what was decided, and its ordinal, 0 if it was not learned."""
    score = state.resemblance.raised_one(batch.learned[row], plain)
    decided = state.rule.decide_one(state.next_seq, x, score, time)
    if decided.ordinary:
        state.resemblance.note_one(batch.learned[row], plain - state.rule.base)
    state.costs.count_one(flagged=decided.is_anomaly)
    state.next_seq += 1
    if not _is_wanted(state, decided):
        return score, decided, 0
    ordinal = state.density.next_ordinal
    state.density.learn_one(batch, row)
    settle(state)
    return score, decided, ordinal


def _is_wanted(state: DetectorState, decided: Decision) -> bool:
    """Whether learn_from wants a sample without a label in the density."""
    match state.config.learn_from:
        case "all":
            return decided.ordinary
        case "decided_normal":
            return not decided.is_anomaly
    return False
