"""The orders that streams are listed in, and places in them."""

import re
from typing import Final, Literal, NamedTuple, Self, get_args

from app.streams.ids import PATTERN
from app.streams.open.summary import Summary

Order = Literal["name", "flagged", "incidents", "silent", "review", "warming_up"]
ORDERS: Final[tuple[Order, ...]] = get_args(Order)
UNKNOWN: Final = 10**15
"""Comes after all values."""
CURSOR: Final = f"-?[0-9]{{1,16}}~{PATTERN}"
_CURSOR = re.compile(f"(-?[0-9]{{1,16}})~({PATTERN})")


class Cursor(NamedTuple):
    """A place in an order: low values come first, and streams of one value in the order of their names.

    A stream whose value changes may move across a place; all others stay on their side of it.
    """

    value: int
    stream: str

    def __str__(self) -> str:
        return f"{self.value}~{self.stream}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote. Raises ValueError for any other text."""
        parts = _CURSOR.fullmatch(text)
        if parts is None:
            raise ValueError(text)
        return cls(int(parts[1]), parts[2])


def value_of(order: Order, stream: Summary, now: float) -> int:
    """Give the value of a stream in an order: what is asked for comes first, most of it before all."""
    match order:
        case "name":
            return 0
        case "flagged":
            return most_first(stream.flagged_lately(now))
        case "incidents":
            return most_first(None if stream.n_seen is None else rarity(stream))
        case "silent":
            return UNKNOWN if stream.written_at is None else round(stream.written_at * 1000)
        case "review":
            return most_first(stream.to_review)
        case "warming_up":
            return most_first(stream.samples_needed)


def most_first(value: int | None) -> int:
    """Put the greatest value first, and the unknown last."""
    return UNKNOWN if value is None else -value


def rarity(stream: Summary) -> int:
    """Give how rare the peak of the open incident is, in thousandths; 0 without one."""
    return 0 if stream.incident is None else 1 + round(1000 * min(max(0.0, stream.incident_severity or 0.0), 1e9))
