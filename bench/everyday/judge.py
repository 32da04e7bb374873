"""How good decisions were: recall, false alarms, storms, delay, and cost beside the best fixed threshold."""

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from app.replay.ranking import best_fixed_threshold, ranking_auc
from bench.tables import Cell
from core.arrays import BoolArray, FloatArray

START: Final = 64
"""First rows, which do not count: as many as the longest default warm-up."""
STORM_ROWS: Final = 100
RARE: Final = 0.01
"""The unit of cost is that of flagging nothing, with at least this share of anomalies."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How good one detector's decisions on one stream were; shares from 0 to 1, None if there was none to judge.

    delay: rows from the first one of a stretch of anomalies to its first flag, mean over the stretches found.
    storm: most false alarms in 100 rows. cost: misses and false alarms; 1 is that of flagging nothing.
    best_cost: the cost of the best fixed threshold in hindsight on the same scores.
    """

    recall: float | None
    found: float | None
    false_share: float
    storm: int
    delay: float | None
    cost: float
    best_cost: float
    auc: float | None

    def to_dict(self) -> dict[str, Cell]:
        return asdict(self)


def judge(score: FloatArray, flagged: BoolArray, anomalous: BoolArray) -> Judgement:
    """Judge decisions (n,) by the truth (n,), from row START on; a score that is NaN ranks lowest."""
    stretches = [(a, b) for a, b in _stretches(anomalous) if a >= START]
    score, flagged, anomalous = score[START:], flagged[START:], anomalous[START:]
    score = np.where(np.isnan(score), -np.inf, score)
    false, missed = flagged & ~anomalous, anomalous & ~flagged
    flagging_nothing = max(int(anomalous.sum()), RARE * len(score))
    best = best_fixed_threshold(score, anomalous, 1.0, 1.0)
    delays = [_delay(flagged[a - START : b - START]) for a, b in stretches]
    known = [delay for delay in delays if delay is not None]
    return Judgement(
        recall=float(flagged[anomalous].mean()) if anomalous.any() else None,
        found=len(known) / len(delays) if delays else None,
        false_share=float(false.sum() / max(int((~anomalous).sum()), 1)),
        storm=_most_within(false, STORM_ROWS),
        delay=float(np.mean(known)) if known else None,
        cost=float((false.sum() + missed.sum()) / flagging_nothing),
        best_cost=best.cost / flagging_nothing,
        auc=ranking_auc(score, anomalous),
    )


def _stretches(anomalous: BoolArray) -> list[tuple[int, int]]:
    """The first row of each run of anomalies, and the row behind it."""
    edges = np.flatnonzero(np.diff(anomalous.astype(int), prepend=0, append=0))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _delay(flagged: BoolArray) -> int | None:
    """Rows until the first flag.

    >>> _delay(np.array([False, False, True])), _delay(np.array([False]))
    (2, None)
    """
    return int(flagged.argmax()) if flagged.any() else None


def _most_within(events: BoolArray, width: int) -> int:
    """The most events in this many consecutive rows.

    >>> _most_within(np.array([1, 0, 1, 1, 0, 0, 1], bool), 3)
    2
    """
    counted = np.concatenate([[0], np.cumsum(events)])
    return int((counted[min(width, len(events)) :] - counted[: max(len(counted) - width, 1)]).max())
