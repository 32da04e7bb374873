"""Query parameters, read strictly."""

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request

from app.streams.errors import Refused
from app.streams.ids import NOT_DOTS, PATTERN, checked_stream_id
from app.streams.log.positions import MAX_SEQ

STREAM: dict[str, Any] = {"type": "string", "pattern": f"^{NOT_DOTS}{PATTERN}$", "examples": ["web-1"]}
NAME: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}
SOURCE: dict[str, Any] = NAME | {"examples": ["telegraf"]}
T = TypeVar("T")

STREAM_ALONE = re.compile(f"stream=({PATTERN})".encode())
FLAGS = {"true": True, "false": False}


class InvalidQuery(Refused):
    """A query parameter that is unknown, repeated, missing or ill-formed."""


def read_query(request: Request, *known: str) -> dict[str, str]:
    """Give the parameters of a request. Raises InvalidQuery for repeated and for unknown ones."""
    if "stream" in known and (alone := STREAM_ALONE.fullmatch(request.scope["query_string"])):
        return {"stream": alone[1].decode("ascii")}  # nearly every request has only this one
    found: dict[str, str] = {}
    try:
        pairs = parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise InvalidQuery("query", request.url.query, "percent-encoded UTF-8") from error
    for name, value in pairs:
        if name not in known:
            raise InvalidQuery(name, value, f"left out: the parameters are {', '.join(known) or 'none'}")
        if name in found:
            raise InvalidQuery(name, value, "given once")
        found[name] = value
    return found


def stream_in(query: dict[str, str]) -> str:
    """Give the stream id."""
    return checked_stream_id(text_in(query, "stream"))


def text_in(query: dict[str, str], name: str) -> str:
    """Give a required parameter."""
    if name not in query:
        raise InvalidQuery(name, None, "given")
    return query[name]


def flag_in(query: dict[str, str], name: str, *, default: bool) -> bool:
    """Give a parameter that is true or false."""
    return read_as(query, name, FLAGS.__getitem__, "true or false", default)


def whole_in(query: dict[str, str], name: str, low: int, high: int, default: int) -> int:
    """Give a parameter that is a whole number in a range."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise ValueError
        return int(text)

    return read_as(query, name, read, f"a whole number from {low} to {high}", default)


def whole(low: int, high: int, default: int) -> dict[str, Any]:
    """Describe what whole_in reads."""
    return {"type": "integer", "minimum": low, "maximum": high, "default": default}


def seq_in(query: dict[str, str], name: str) -> int | None:
    """Give an optional parameter that is a sample's seq."""
    return read_as(query, name, read_seq, f"a whole number from 1 to {MAX_SEQ}", None)


def read_seq(text: str) -> int:
    """Read a sample's seq. Raises ValueError for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEQ)) and 1 <= int(text) <= MAX_SEQ):
        raise ValueError
    return int(text)


def read_as(query: dict[str, str], name: str, read: Callable[[str], T], limit: str, default: T) -> T:
    """Read one parameter, or give its default."""
    if name not in query:
        return default
    try:
        return read(query[name])
    except (KeyError, ValueError):
        raise InvalidQuery(name, query[name], limit) from None
