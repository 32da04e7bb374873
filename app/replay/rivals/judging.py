"""How good decisions were, by the labels of the file."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.replay.ranking import average_precision, ranking_auc
from app.replay.rivals.rival import Bools, Decisions, Floats

DAY_SECONDS: Final = 86_400.0


@dataclass(frozen=True)
class Standing:
    """One row of the table; shares are None if there was nothing to judge.

    An event is a run of samples labelled anomalous, without one labelled normal in between; it is found if one of them
    is flagged. false_alarms_a_day is None without times.
    """

    name: str
    ranking_auc: float | None
    average_precision: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    cost: float
    false_alarms: int
    false_alarms_a_day: float | None
    events: int
    events_found: int


def judge(
    name: str, decisions: Decisions, judged: Bools, anomalous: Bools, times: Floats | None, costs: tuple[float, float]
) -> Standing:
    """Judge decisions (n,) on the samples that count (n,) by their truth (n,)."""
    score, flagged, truth = decisions.score[judged], decisions.flagged[judged], anomalous[judged]
    hits, alarms, misses = int((flagged & truth).sum()), int((flagged & ~truth).sum()), int((truth & ~flagged).sum())
    events = event_numbers(truth)
    return Standing(
        name=name,
        ranking_auc=ranking_auc(score, truth),
        average_precision=average_precision(score, truth),
        precision=hits / (hits + alarms) if hits + alarms else None,
        recall=hits / (hits + misses) if hits + misses else None,
        f1=2 * hits / (2 * hits + alarms + misses) if hits + alarms + misses else None,
        cost=costs[0] * misses + costs[1] * alarms,
        false_alarms=alarms,
        false_alarms_a_day=_a_day(alarms, times, judged),
        events=int(events.max(initial=0)),
        events_found=len(np.unique(events[flagged & truth])),
    )


def event_numbers(truth: Bools) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Number the runs of anomalies from 1; normal samples have 0.

    >>> event_numbers(np.array([True, True, False, True])).tolist()
    [1, 1, 0, 2]
    """
    starts = truth & ~np.concatenate([[False], truth[:-1]])
    return np.where(truth, starts.cumsum(), 0)


def _a_day(alarms: int, times: Floats | None, judged: Bools) -> float | None:
    if times is None or judged.sum() < 2:
        return None
    seconds = float(np.ptp(times[judged]))
    return alarms * DAY_SECONDS / seconds if seconds else None
