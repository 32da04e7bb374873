"""Times in queries: epoch seconds, or RFC 3339."""

import math
from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.api.queries import InvalidQuery, read_as, text_in
from app.streams.batches.timestamps import EARLIEST, LATEST, advice
from app.streams.log.span import Span

YEARS = "from 1990 to 2100"
LIMIT = f"epoch seconds {YEARS}, or an RFC 3339 date and time with its offset, such as 2026-10-25T02:30:00Z"
MOMENT: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "minimum": EARLIEST, "maximum": LATEST},
        {"type": "string", "format": "date-time"},
    ],
    "examples": [1800000000],
}
_ZONED = Annotated[datetime, msgspec.Meta(tz=True)]


def span_in(query: dict[str, str], *, is_required: bool = False) -> Span:
    """Give the stretch of time from `from` to `to`; one that is left out, if it may be, is no end."""
    first = moment_in(query, "from") if is_required or "from" in query else -math.inf
    last = moment_in(query, "to") if is_required or "to" in query else math.inf
    if first > last:
        raise InvalidQuery("from", query["from"], "not after to")
    return Span(first, last)


def moment_in(query: dict[str, str], name: str) -> float:
    """Give a required parameter that is a time, in epoch seconds."""
    text_in(query, name)
    seconds = read_as(query, name, read_moment, LIMIT, math.nan)
    if not is_plausible(seconds):
        raise InvalidQuery(name, query[name], limit_for(seconds))
    return seconds


def read_moment(text: str) -> float:
    """Read a time. Raises ValueError for anything else."""
    try:
        return number(text)
    except ValueError:
        return msgspec.convert(text, _ZONED).timestamp()


def number(text: str) -> float:
    """Read a finite number as JSON has it. Raises ValueError for anything else."""
    value = float(text)
    if not math.isfinite(value) or "_" in text or not text.isascii() or text != text.strip():
        raise ValueError
    return value


def limit_for(seconds: float) -> str:
    """Say which times samples can have, and what one that none can have may be instead."""
    return LIMIT + advice(seconds, LATEST)


def is_plausible(seconds: float) -> bool:
    """Tell whether a time is one that samples can have."""
    return EARLIEST <= seconds <= LATEST
