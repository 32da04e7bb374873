"""The samples of one request, with their ids and times."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.streams.batches.samples import Matrix, Rows, Samples
from app.streams.batches.timestamps import Times
from app.streams.errors import IdConflict, InvalidIds, StreamExists, refuse_beyond
from app.streams.faults import Fault
from core import Calendar, DetectorConfig, Records

NO_DEFAULTS: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class NewRows:
    """The samples of a batch that are not known yet, and their places in it."""

    X: Matrix
    places: Rows
    ids: tuple[str, ...]
    times: Times | None
    explain: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one request; ids ("" for none) and timestamps are either empty or one a sample.

    explain asks for an explanation of each flagged sample. calendar is what a stream gets that these samples create;
    another stream must have the same.
    """

    samples: Samples
    ids: tuple[str, ...] = ()
    timestamps: Times | None = None
    explain: bool = False
    calendar: Calendar | None = None

    def config(self, stream: str, defaults: Mapping[str, Any] = NO_DEFAULTS) -> DetectorConfig:
        """Describe the stream that these samples would begin. Raises InvalidConfig if they do not fit the defaults."""
        own = self.samples.fields(stream)
        if self.calendar is not None:
            own = {**own, "calendar": self.calendar}
        return DetectorConfig.from_dict({**defaults, **own})

    def refuse_other_calendar(self, stream: str, config: DetectorConfig) -> None:
        """Raise StreamExists if the request names a calendar that the stream does not have."""
        if self.calendar not in (None, config.calendar):
            raise StreamExists(stream, "calendar")

    def matrix(self, config: DetectorConfig, max_samples: int) -> Matrix:
        """Give the samples as a matrix; cheap checks come first. Raises TooMany, InvalidIds or InvalidSamples."""
        n = self.samples.count(config.n_features)
        refuse_beyond(max_samples, n, "samples", "ITAN_MAX_BATCH_SAMPLES")
        X = self.samples.matrix(config)
        for field, column in (("ids", self.ids), ("timestamps", self.timestamps)):
            if column is not None and len(column) not in (0, n):
                raise InvalidIds(field, f"{len(column)} entries", f"as many as the samples, {n}")
        if self.ids:
            refuse_doubled(self.ids)
        return X

    def new_rows(self, X: Matrix, known: Mapping[int, Records]) -> NewRows:
        """Give the rows of the batch, whose samples are X, without the known ones. Raises IdConflict."""
        if not known:
            return NewRows(X, np.arange(len(X)), self.ids, self.timestamps, self.explain)
        refuse_changed(X, self.ids, known)
        places = np.array([row for row in range(len(X)) if row not in known], dtype=np.intp)
        ids = tuple(self.ids[place] for place in places) if self.ids else ()
        times = None if self.timestamps is None else self.timestamps[places]
        return NewRows(X[places], places, ids, times, self.explain)


def refuse_doubled(ids: tuple[str, ...]) -> None:
    """Raise InvalidIds if an id occurs twice in a batch."""
    given = [client_id for client_id in ids if client_id]
    if len(set(given)) < len(given):
        first: dict[str, int] = {}
        again = [i for i, client_id in enumerate(ids) if client_id and first.setdefault(client_id, i) != i]
        limit = "different from the ids before it in the batch"
        raise InvalidIds.of((Fault(f"ids[{i}]", ids[i], limit) for i in again), again)


def refuse_changed(X: Matrix, ids: tuple[str, ...], known: Mapping[int, Records]) -> None:
    """Raise IdConflict for an id that came with other values before."""
    rows, first = np.array(list(known)), np.concatenate([record.x for record in known.values()])
    same = ((X[rows] == first) | (np.isnan(X[rows]) & np.isnan(first))).all(axis=1)
    if not same.all():
        changed = sorted(rows[~same].tolist())
        raise IdConflict.of((Fault(f"ids[{row}]", ids[row], IdConflict.LIMIT) for row in changed), changed)
