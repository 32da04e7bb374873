"""Lists of bytes and of texts as columns; ids that count up cost about nothing."""

from collections.abc import Sequence
from string import digits
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.streams.log.blocks.container import MOST_BYTES, Columns
from app.streams.log.events import UnreadableEvent

MOST_DIGITS: Final = 18
"""Numbers of so many digits are exact in 64 bits."""
MOST_TEXTS: Final = 1 << 20
"""More than any block holds; a forged block of a few bytes may tell of ten times as many."""

Arrays = dict[str, npt.NDArray[Any]]


def pieces_to_arrays(name: str, pieces: Sequence[bytes]) -> Arrays:
    """Give the columns of a list of bytes."""
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    return {f"{name}.length": lengths, f"{name}.bytes": np.frombuffer(b"".join(pieces), np.uint8)}


class Pieces:
    """A list of bytes."""

    def __init__(self, columns: Columns, name: str) -> None:
        self._bytes = columns.read(f"{name}.bytes", np.uint8).tobytes()
        self._name, self._lengths = name, columns.read(f"{name}.length", "<i8")
        check_range(f"{name}.length", self._lengths, len(self._bytes) + 1)
        self._ends = np.cumsum(self._lengths)
        if len(self._ends) and self._ends[-1] != len(self._bytes):
            raise UnreadableEvent(f"a block's column {name} does not fit its lengths")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, i: int) -> bytes:
        return self._bytes[int(self._ends[i - 1]) if i else 0 : int(self._ends[i])]

    def check_total(self, places: npt.NDArray[np.int64]) -> None:
        """Raise UnreadableEvent if those at these places take too much, since one may be at many places."""
        if self._lengths[places].sum() > MOST_BYTES:
            raise UnreadableEvent(f"a block's column {self._name} would take more than {MOST_BYTES} bytes")


def texts_to_arrays(name: str, texts: Sequence[str]) -> Arrays:
    """Give the columns of a list of texts: what comes before the number at the end, and the number."""
    split = [_split(text) for text in texts]
    heads = {head: place for place, head in enumerate(dict.fromkeys(head for head, _ in split))}
    written = [head.encode("utf-8", "surrogatepass") for head in heads]
    return {
        f"{name}.head": np.array([heads[head] for head, _ in split], np.int64),
        f"{name}.digits": np.array([len(number) for _, number in split], np.int64),
        f"{name}.number": np.array([int(number or 0) for _, number in split], np.int64),
    } | pieces_to_arrays(f"{name}.heads", written)


def _split(text: str) -> tuple[str, str]:
    cut = max(len(text.rstrip(digits)), len(text) - MOST_DIGITS)
    return text[:cut], text[cut:]


class Texts:
    """A list of texts."""

    def __init__(self, columns: Columns, name: str) -> None:
        if (n := columns.shape(f"{name}.head")[0]) > MOST_TEXTS:
            raise UnreadableEvent(f"a block has {n} {name}, more than {MOST_TEXTS}")
        self._heads = Pieces(columns, f"{name}.heads")
        self._head = columns.read(f"{name}.head", "<i8")
        self._digits = columns.read(f"{name}.digits", "<i8", len(self._head))
        self._number = columns.read(f"{name}.number", "<i8", len(self._head))
        check_range(name, self._head, len(self._heads))
        check_range(name, self._digits, MOST_DIGITS + 1)

    def __len__(self) -> int:
        return len(self._head)

    def check_total(self, places: npt.NDArray[np.int64]) -> None:
        """Raise UnreadableEvent if those at these places take too much."""
        self._heads.check_total(self._head[places])

    def at(self, places: npt.NDArray[np.int64]) -> list[str]:
        """Give those at these places."""
        columns = (self._head, self._digits, self._number)
        return [self._text(*row) for row in zip(*(column[places].tolist() for column in columns), strict=True)]

    def _text(self, head: int, n_digits: int, number: int) -> str:
        text = self._heads[head].decode("utf-8", "surrogatepass")
        return f"{text}{number:0{n_digits}d}" if n_digits else text


def check_range(name: str, values: npt.NDArray[np.int64], end: int) -> None:
    """Raise UnreadableEvent unless all of these are at least 0, and below an end."""
    if len(values) and not 0 <= values.min() <= values.max() < end:
        raise UnreadableEvent(f"a block's column {name} holds a number that is out of range")
