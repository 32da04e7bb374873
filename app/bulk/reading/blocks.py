"""Samples of many streams as columns, and what makes their streams and ids acceptable to a service."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from app.bulk.rows import Floats
from app.replay.reading.cells import BadTable, quoted
from app.streams.errors import InvalidStreamId
from app.streams.ids import LONGEST_SAMPLE_ID, checked_stream_id, is_sample_id

BLOCK_ROWS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Block:
    """n rows of one file as they stand there; the columns are those of app.bulk.rows.Rows, each row has its stream."""

    streams: npt.NDArray[np.object_]
    X: Floats
    times: Floats
    ids: npt.NDArray[np.object_]
    label: npt.NDArray[np.int8]
    known: Floats
    rows: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.X)


class Names:
    """Checks the streams and ids of a file; `row` is what the file calls its rows."""

    def __init__(self, row: str) -> None:
        self._row = row
        self._known: set[str] = set()

    def check(self, streams: Sequence[object], ids: Sequence[object], rows: Sequence[int]) -> None:
        """Raise BadTable for the first name that a service would refuse."""
        for stream in dict.fromkeys(streams):
            if stream not in self._known:
                self._check_stream(stream, streams, rows)
        for place, name in enumerate(ids):
            if name is not None and not is_sample_id(str(name)):
                said = f"at most {LONGEST_SAMPLE_ID} characters, none of them a control character"
                raise BadTable(f"{self._row} {rows[place]}: the id {quoted(str(name))} must be {said}")

    def _check_stream(self, stream: object, streams: Sequence[object], rows: Sequence[int]) -> None:
        try:
            self._known.add(checked_stream_id("" if stream is None else str(stream)))
        except InvalidStreamId as error:
            place = next(i for i, name in enumerate(streams) if name == stream)
            said = "no stream is named" if not stream else f"the stream {quoted(str(stream))} must be {error.limit}"
            raise BadTable(f"{self._row} {rows[place]}: {said}") from None


def slices(n: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Cut n rows."""
    return (slice(first, first + size) for first in range(0, n, size))
