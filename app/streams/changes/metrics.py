"""Counts what was done to a stream in the metrics, once it is logged."""

from collections.abc import Mapping
from typing import Final

from app.streams.open.session import Session
from app.streams.open.state import StreamState
from core import Records

FRESH: Final = frozenset(("applied", "revised"))


def count_learned(session: Session, state: StreamState, learned: Records) -> None:
    """Count samples that were learned, and the scores of those that have one."""
    metrics, figures, now = session.metrics, state.figures, session.clock.monotonic()
    metrics.samples["learned"].inc(len(learned))
    metrics.note_learned(session.stream, now)
    ready = learned.ready.tolist().count(True)
    if ready:
        # the warm-up comes first; lists, because most batches are a sample or two
        scores, thresholds = learned.score[-ready:].tolist(), learned.threshold[-ready:].tolist()
        flags = learned.is_anomaly.tolist().count(True)
        metrics.note_scores(scores, thresholds, flags, figures.expected_flag_rates)
        figures.take_scores(scores, thresholds, flags, now)
    count_splits(session, state)


def count_labelled(
    session: Session,
    state: StreamState,
    outcome: Mapping[int | str, str],
    retracted: Mapping[int | str, bool],
    labelled: Records,
) -> None:
    """Count labels that changed something, by the decision on their samples."""
    metrics = session.metrics
    columns = (labelled.seq, labelled.ready, labelled.is_anomaly, labelled.label)
    for seq, ready, flagged, label in zip(*(column.tolist() for column in columns), strict=True):
        if ready and outcome[seq] in FRESH:
            metrics.confusion[cell_of(flagged=flagged, anomalous=label > 0)].inc()
    metrics.retractions.inc(sum(retracted.values()))
    count_splits(session, state)
    state.figures.take_costs(state.detector.costs())


def cell_of(*, flagged: bool, anomalous: bool) -> str:
    """Name the cell of the confusion matrix: tp, fp, tn or fn."""
    return ("t" if flagged == anomalous else "f") + ("p" if flagged else "n")


def count_splits(session: Session, state: StreamState) -> None:
    """Count the splits since the last update of the figures; splits during a replay are not counted."""
    before = state.figures.splits
    state.update_figures()
    if state.figures.splits != before:
        session.metrics.splits.inc(state.figures.splits - before)
