"""What to label next: incidents without a label, and close calls."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.streams.errors import ArchiveUnavailable
from app.streams.log.incidents import Incident, read_incident
from app.streams.views.columns import Columns
from app.streams.views.downsampling import Downsampler
from app.streams.views.history import LogView

WINDOW = 5_000
BORDER = 0.5
"""A close call is below its threshold by at most this many interquartile ranges of the scores."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Incidents to review, the gravest first, open ones before the others; close calls, nearest to the threshold first.

    to_review counts all such incidents; border is how far below its threshold a close call may be, in nats.
    """

    incidents: list[Incident]
    to_review: int
    rows: Columns | None
    border: float | None


async def review(view: LogView, oldest_to_label: int, limit: int) -> Queue:
    """Give the newest `limit` incidents without a label, and as many close calls among the newest WINDOW samples."""
    known = [read_incident(row) for row in await view.log.store.incidents(view.log.stream)]
    waiting = [incident for incident in known if incident.seq >= oldest_to_label and not incident.is_labelled]
    first = max(view.oldest_seq, oldest_to_label, view.head.seq - WINDOW + 1)
    everything = Downsampler(first, view.head.seq, WINDOW)
    try:
        await view.rows(first, view.head.seq, everything)
    except ArchiveUnavailable:
        return await review(await view.kept(), oldest_to_label, limit)
    rows, border = close_calls(everything.rows(), {incident.seq for incident in known}, limit)
    return Queue(sorted(waiting[-limit:], key=urgency), len(waiting), rows, border)


def urgency(incident: Incident) -> tuple[bool, float]:
    """Sort open incidents first, then the gravest."""
    return incident.ended_at is not None, -incident.peak_severity


def close_calls(rows: Columns | None, incidents: Collection[int], limit: int) -> tuple[Columns | None, float | None]:
    """Choose the newest `limit` close calls outside incidents; say how far below its threshold one may be."""
    if rows is not None:
        rows = rows[~rows.in_maintenance]
    scores = np.zeros(0) if rows is None else rows.score[~np.isnan(rows.score)]
    if rows is None or not scores.size:
        return None, None
    border = BORDER * float(np.subtract(*np.quantile(scores, [0.75, 0.25])))
    newest = rows[candidates(rows, border, incidents)[-limit:]]
    return newest[np.argsort(abs(newest.score - newest.threshold), kind="stable")], border


def candidates(rows: Columns, border: float, incidents: Collection[int]) -> npt.NDArray[np.intp]:
    """Find the samples of no known incident, without a label, that were flagged, or nearly were."""
    near = rows.score >= rows.threshold - border
    alone = ~np.isin(rows.incident, list(incidents))
    return np.flatnonzero((rows.is_anomaly | near) & (rows.label == 0) & alone)
