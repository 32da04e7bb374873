"""Finds what a long object has at a key; many other members would take long to read."""

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import msgspec

from app.api.bodies.reading import InvalidJson
from app.streams.errors import TooMany

MOST_MEMBERS: Final = 10_000
NO_NAME_TWICE: Final = "an object in which no name comes twice"


class TooManyMembers(Exception):
    """Ends the decoding: not a ValueError, which the decoder would take for its own."""


class Name(str):
    """The name of a member."""

    __slots__ = ()


def part_of(text: bytes, key: str) -> bytes:
    """Give what an object has at a key; the object if it has no such key.

    Raises InvalidJson if a name comes twice, TooMany for too many members.
    """
    try:
        parts = msgspec.json.decode(text, type=dict[Name, msgspec.Raw], dec_hook=counted())
    except TooManyMembers:
        limit = f"at most {MOST_MEMBERS} members"
        raise TooMany("body", f"an object of more than {MOST_MEMBERS} members", limit) from None
    inner = sum(bytes(part).count(b":") for part in parts.values())
    if text.count(b":") != inner + len(parts) + "".join(parts).count(":"):
        raise InvalidJson("body", None, NO_NAME_TWICE)
    return bytes(parts.get(Name(key), text))


def counted() -> Callable[[type, Any], Any]:
    """Make names, only so many; decoding ends at the next."""
    numbers = count(1)

    def name_of(kind: type, given: Any) -> Any:
        if next(numbers) > MOST_MEMBERS:
            raise TooManyMembers
        return kind(given)

    return name_of
