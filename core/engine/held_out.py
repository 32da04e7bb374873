"""Samples that are held out: scored and decided by the model as it is, and not learned."""

import numpy as np

from core.arrays import FloatArray, IntArray
from core.engine.learning import evaluate, surprise
from core.engine.scales import own_scalings
from core.engine.state import DetectorState
from core.records import Records
from core.records.layout import HELD_OUT


def hold_out(state: DetectorState, X: FloatArray, time: FloatArray) -> Records:
    """Give records of samples (n, m), at least one; the state gives them numbers, and is else as it was.

    Each is scored and decided as if it came next. During the warm-up there are no scores.
    """
    records = Records.of(state.next_seq, X, time)
    records.rows["status"], records.rows["ordinary"] = HELD_OUT, False
    if state.ready:
        own = own_scalings(state, X)
        if len(own) < len(X):
            _decide(state, records, np.setdiff1d(np.arange(len(X)), [*own]))
        for row, scaling in own.items():
            with state.rescaled(scaling):
                _decide(state, records, np.array([row]))
    state.hold_out(len(X))
    return records


def _decide(state: DetectorState, records: Records, chosen: IntArray) -> None:
    """Write the scores of chosen samples (k,), and what would be decided of each if it came next."""
    rows = records.rows
    batch = evaluate(state, records.x[chosen], records.time[chosen])
    score, threshold = state.resemblance.raised(batch.learned, surprise(state, batch)), state.rule.value
    rows["ready"][chosen], rows["score"][chosen], rows["threshold"][chosen] = True, score, threshold
    rows["severity"][chosen], rows["is_anomaly"][chosen] = state.rule.severities(score), score > threshold
