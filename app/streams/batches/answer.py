"""The answer to a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.streams.batches.samples import Rows
from app.streams.log.explanations import Explained
from core import Records

COLUMNS = ("seq", "score", "threshold", "is_anomaly", "ready", "severity", "incident", "event", "held_out")


@dataclass(slots=True)
class Answer:
    """What is said of each sample, in columns; explained is None unless the request asked for explanations.

    incident is the id of the one that a sample belongs to, 0 for none; event counts in core.INCIDENT_EVENTS. held_out
    is true for samples in maintenance.
    """

    seq: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    is_anomaly: npt.NDArray[np.bool_]
    ready: npt.NDArray[np.bool_]
    severity: npt.NDArray[np.float64]
    incident: npt.NDArray[np.int64]
    event: npt.NDArray[np.int8]
    held_out: npt.NDArray[np.bool_]
    samples_needed: int = 0
    explained: list[Explained | None] | None = None
    features: Sequence[str] = ()
    as_of_seq: int = 0

    @classmethod
    def blank(cls, n: int) -> "Answer":
        """Give columns for n samples without scores."""
        seq, score, threshold, severity = np.zeros(n, np.int64), *np.full((3, n), np.nan)
        decided = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        event, held_out = np.zeros(n, np.int8), np.zeros(n, np.bool_)
        return cls(seq, score, threshold, *decided, severity, np.zeros(n, np.int64), event, held_out)

    @classmethod
    def of(cls, records: Records) -> "Answer":
        """Give the columns of records."""
        return cls(*(getattr(records, name) for name in COLUMNS))

    @classmethod
    def merged(cls, known: Mapping[int, Records], new: Rows, learned: Records | None) -> "Answer":
        """Put the records of known rows and of the new ones, in these places, together."""
        answer = cls.blank(len(known) + len(new))
        for row, record in known.items():
            answer._put(np.array([row]), record)
        if learned is not None:
            answer._put(new, learned)
        return answer

    def _put(self, rows: Rows, records: Records) -> None:
        """Fill in the records of these rows."""
        for name in COLUMNS:
            getattr(self, name)[rows] = getattr(records, name)
