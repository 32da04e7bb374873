"""Samples of the log."""

from typing import TYPE_CHECKING, Any

import msgspec

from itan_client.answers.incidents import Incident
from itan_client.answers.samples import Explanation
from itan_client.columns import Columns

if TYPE_CHECKING:
    import pandas as pd


class LoggedColumns(Columns, frozen=True, kw_only=True):
    """Samples in columns; time, in epoch seconds, is a sample's timestamp, or else the time of its arrival."""

    __columns__ = (
        "seq",
        "id",
        "time",
        "score",
        "threshold",
        "is_anomaly",
        "severity",
        "incident",
        "event",
        "in_maintenance",
        "label",
    )
    __time__ = "time"

    seq: list[int]
    id: list[str | None]
    time: list[float]
    score: list[float | None]
    threshold: list[float | None]
    is_anomaly: list[bool]
    severity: list[float | None]
    incident: list[int | None]
    event: list[str | None]
    in_maintenance: list[bool]
    label: list[bool | None]


class History(LoggedColumns, frozen=True, kw_only=True):
    """The samples of a range, thinned so that each stretch keeps its lowest and its highest score.

    `next` is the seq to continue from if the range holds more; `position` is where `watch` continues.
    """

    stream: str
    oldest_seq: int
    newest_seq: int
    position: str
    next: int | None
    thinned: bool
    marked_thinned: bool
    features: list[str] | None = None
    values: list[list[float | None]] | None = None

    def to_pandas(self, index: Any = None) -> "pd.DataFrame":
        """Give the samples by time, and a column for each feature if the values are there."""
        import pandas as pd

        frame = LoggedColumns.to_pandas(self, index)
        if self.values is None:
            return frame
        values = pd.DataFrame(self.values, columns=self.features, index=frame.index, dtype="float64")
        return frame.join(values, rsuffix="_value")


class LoggedSample(msgspec.Struct, frozen=True):
    """One sample, and the answer to it."""

    seq: int
    id: str | None
    time: float
    score: float | None
    threshold: float | None
    is_anomaly: bool
    severity: float | None
    incident: int | None
    event: str | None
    in_maintenance: bool
    label: bool | None
    values: dict[str, float | None]


class Review(msgspec.Struct, frozen=True):
    """What has no label: incidents, open ones first and then the gravest, and samples that were nearly flagged.

    to_review counts all incidents without a label; samples belong to none, the nearest to their threshold first.
    """

    stream: str
    incidents: list[Incident]
    to_review: int
    samples: list[LoggedSample]
    border: float | None


class InspectedSample(LoggedSample, frozen=True):
    """One sample, and what the present model says of it (None before the stream is ready)."""

    stream: str
    score_now: float | None
    threshold_now: float | None
    as_of_seq: int
    contributions: dict[str, float | None] | None
    expected: dict[str, float] | None
    path: list[int] | None
    labels_contribution: float | None
    nearest_anomaly: int | None
    first_explanation: Explanation | None
