"""Counts what was done to a stream in the metrics, once it is logged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from app.metrics import Metrics
from app.streams.open.session import Session
from app.streams.state.state import StreamState
from core import Records

FRESH: Final = frozenset(("applied", "revised"))


def count_learned(session: Session, state: StreamState, learned: Records) -> None:
    """Count samples that were learned, and the scores of those that have one."""
    count_learned_each(session.metrics, [(session, state, learned)])


def count_learned_each(metrics: Metrics, learned: Sequence[tuple[Session, StreamState, Records]]) -> None:
    """Count the samples that streams have observed, in the metrics of all of them together once."""
    all_scores, all_thresholds, all_flags = list[float](), list[float](), 0
    expected, n_learned, n_held_out = Counter[str](), 0, 0
    for session, state, observed in learned:
        records = observed.counted
        n_learned, n_held_out = n_learned + len(records), n_held_out + len(observed) - len(records)
        figures, now = state.figures, session.clock.monotonic()
        metrics.note_learned(session.stream, now)
        ready = records.ready.tolist().count(True)
        if ready:
            # the warm-up comes first; lists, because most batches are a sample or two
            scores, thresholds = records.score[-ready:].tolist(), records.threshold[-ready:].tolist()
            flags = records.is_anomaly.tolist().count(True)
            figures.take_scores(scores, thresholds, flags, now)
            figures.severity = float(records.severity[-1])
            all_scores += scores
            all_thresholds += thresholds
            all_flags += flags
            for truth, rate in figures.expected_flag_rates.items():
                expected[truth] += rate * ready
        count_splits(session, state)
    metrics.samples["learned"].inc(n_learned)
    if n_held_out:
        metrics.samples["in_maintenance"].inc(n_held_out)
    if all_scores:
        metrics.note_scores(all_scores, all_thresholds, all_flags, expected)


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
