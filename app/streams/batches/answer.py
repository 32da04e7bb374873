"""The answer to a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.streams.batches.samples import Rows
from app.streams.log.explanations import Explained
from core import Records


@dataclass(slots=True)
class Answer:
    """What is said of each sample, in columns; explained is None unless the request asked for explanations."""

    seq: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    is_anomaly: npt.NDArray[np.bool_]
    ready: npt.NDArray[np.bool_]
    samples_needed: int
    explained: list[Explained | None] | None = None
    features: Sequence[str] = ()
    as_of_seq: int = 0

    @classmethod
    def blank(cls, n: int) -> "Answer":
        """Give columns for n samples without scores."""
        nothing = np.full(n, np.nan)
        return cls(np.zeros(n, np.int64), nothing, nothing.copy(), np.zeros(n, np.bool_), np.zeros(n, np.bool_), 0)

    @classmethod
    def of(cls, records: Records) -> "Answer":
        """Give the columns of records."""
        columns = (records.seq, records.score, records.threshold, records.is_anomaly, records.ready)
        return cls(*columns, samples_needed=0)

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
        self.seq[rows], self.score[rows], self.threshold[rows] = records.seq, records.score, records.threshold
        self.is_anomaly[rows], self.ready[rows] = records.is_anomaly, records.ready
