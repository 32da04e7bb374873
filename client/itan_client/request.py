"""One request to the service, described without sending it: `Client` and `AsyncClient` send the same ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

T = TypeVar("T")
JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """What to send, and how to read the answer. A repeatable request counts once, however often it is sent."""

    method: str
    path: str
    read: Callable[[bytes], T]
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    repeatable: bool = True

    @property
    def headers(self) -> dict[str, str]:
        """Give the headers of its own."""
        return {"Content-Type": self.content_type} if self.content_type else {}


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a long list, and the request for the next part."""

    entries: list[T]
    next: Request["Page[T]"] | None


def then(request: Request[T], following: Callable[[], Request[Page[T]] | None]) -> Request[Page[T]]:
    """Make a request the page of a list that goes on with another."""

    def read(content: bytes) -> Page[T]:
        return Page([request.read(content)], following())

    sent = request.params, request.body, request.content_type, request.repeatable
    return Request(request.method, request.path, read, *sent)


def encode(body: object) -> bytes:
    """Write JSON; NaN becomes null, as the service reads a missing value."""
    return msgspec.json.encode(body, enc_hook=_plain)


def without_none(**fields: object) -> dict[str, object]:
    """Give the fields that are there."""
    return {name: value for name, value in fields.items() if value is not None}


def flag(value: bool) -> str:
    """Write a flag as a parameter."""
    return "true" if value else "false"


def stream_path(stream: str, rest: str = "") -> str:
    """Give the path of a stream; whatever its id holds stays one part of the path."""
    return f"/streams/{quote(stream, safe='')}{rest}"


def nothing(content: bytes) -> None:
    """Read an answer without a body."""


def unread(content: bytes) -> bytes:
    """Give a body as it came."""
    return content


def _plain(value: Any) -> Any:
    """Give numbers and arrays of numpy as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r}")
