"""One sample: what the log says of it, and how the present model explains it."""

from dataclasses import dataclass

from app.streams.batches.features import feature_names
from app.streams.errors import UnknownSample
from app.streams.log.events import read_batch
from app.streams.log.explanations import Explained, explained_of
from app.streams.open.session import Session
from app.streams.views.columns import Columns, batch_columns
from app.streams.views.history import labels_of


@dataclass(frozen=True, slots=True)
class Inspection:
    """A sample with two explanations, if there are any: `first`, when it was observed, and `now`, by the present model.

    score_now is the present model's score; it is None, like `now`, before the stream is ready.
    """

    row: Columns
    features: list[str]
    first: Explained | None
    now: Explained | None
    score_now: float | None
    threshold_now: float
    as_of_seq: int


async def inspect(session: Session, seq: int) -> Inspection:
    """Describe a sample. Raises UnknownSample if the log does not hold it."""
    detector = (await session.readable()).detector
    row, first = await logged(session, seq)
    now, score_now = None, None
    if detector.ready:
        explanation = detector.explain(row.x, None if detector.config.calendar is None else row.stamp)
        (now,), score_now = explained_of(explanation), float(explanation.score[0])
    features, as_of_seq = feature_names(detector.config), detector.next_seq - 1
    return Inspection(row, features, first, now, score_now, detector.threshold, as_of_seq)


async def logged(session: Session, seq: int) -> tuple[Columns, Explained | None]:
    """Give a sample from the log with its present label, and the explanation given when it was observed."""
    for entry in await session.log.entries_holding([seq]):
        rows = batch_columns([entry])
        labels = await labels_of(session.log, [seq])
        return rows[rows.seq == seq].labelled(labels), read_batch(entry.body).explained.get(seq)
    raise UnknownSample(seq)
