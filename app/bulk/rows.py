"""Samples of one stream as columns, in the order in which they are observed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class BadRow(ValueError):
    """A row that cannot be taken, by the number of its file and its place there."""

    def __init__(self, place: Sequence[int], said: str) -> None:
        super().__init__(int(place[0]), int(place[1]), said)
        self.file, self.row, self.said = int(place[0]), int(place[1]), said

    def __reduce__(self) -> tuple[type["BadRow"], tuple[tuple[int, int], str]]:
        return BadRow, ((self.file, self.row), self.said)


@dataclass(frozen=True, slots=True)
class Rows:
    """n samples X (n, m), NaN = missing, with times (n,) if they have any, and ids, "" for none, if some have one.

    label (n,) is 1 for anomalous, -1 for normal, 0 for unknown; known (n,) is when it became known, NaN if only a delay
    tells. places (n, 2) say where each stands in the input: the number of its file, and its line or row there.
    """

    X: Floats
    times: Floats | None
    ids: tuple[str, ...]
    label: npt.NDArray[np.int8]
    known: Floats
    places: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, part: slice) -> "Rows":
        times = None if self.times is None else self.times[part]
        return Rows(self.X[part], times, self.ids[part], self.label[part], self.known[part], self.places[part])

    def chosen(self, rows: Sequence[int]) -> "Rows":
        """Give some rows."""
        if len(rows) == len(self):
            return self
        at = np.array(rows, np.intp)
        times = None if self.times is None else self.times[at]
        ids = tuple(self.ids[i] for i in rows) if self.ids else ()
        return Rows(self.X[at], times, ids, self.label[at], self.known[at], self.places[at])

    @staticmethod
    def joined(parts: "list[Rows]") -> "Rows":
        """Put parts of one stream together."""
        if len(parts) == 1:
            return parts[0]
        times = None if parts[0].times is None else np.concatenate([np.asarray(part.times) for part in parts])
        has_ids = any(part.ids for part in parts)
        ids = tuple(name for part in parts for name in part.ids or ("",) * len(part)) if has_ids else ()
        return Rows(
            np.concatenate([part.X for part in parts]),
            times,
            ids,
            np.concatenate([part.label for part in parts]),
            np.concatenate([part.known for part in parts]),
            np.concatenate([part.places for part in parts]),
        )


def in_batches(parts: Iterable[Rows], size: int) -> Iterator[Rows]:
    """Cut rows anew, into batches of one size; the last one may be shorter."""
    waiting, n = list[Rows](), 0
    for part in parts:
        waiting.append(part)
        n += len(part)
        if n < size:
            continue
        together = Rows.joined(waiting)
        whole = n - n % size
        for first in range(0, whole, size):
            yield together[first : first + size]
        waiting, n = [together[whole:]] if n % size else [], n % size
    if n:
        yield Rows.joined(waiting)
