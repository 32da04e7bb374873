"""Streams: create, describe, list, change, clone, reset, delete, export, import."""

from collections.abc import Mapping
from typing import Any

import msgspec

from itan_client.answers.streams import Estimate, Stream, StreamSummary
from itan_client.request import BYTES, JSON, Page, Request, encode, nothing, stream_path, unread


def create(stream: str, config: Mapping[str, Any]) -> Request[Stream]:
    """Create a stream; if it exists with the same config nothing happens, with another config it is an error."""
    return Request("PUT", stream_path(stream), _STREAM, {}, encode(config), JSON)


def estimate(config: Mapping[str, Any]) -> Request[Estimate]:
    """Say what a stream of a config would take, without creating one."""
    return Request("POST", "/streams/estimate", _ESTIMATE, {}, encode(config), JSON)


def get(stream: str) -> Request[Stream]:
    """Get a stream's config and state."""
    return Request("GET", stream_path(stream), _STREAM)


def patch(stream: str, changes: Mapping[str, Any]) -> Request[Stream]:
    """Change fields of a stream's config; it keeps what it has learned."""
    return Request("PATCH", stream_path(stream), _STREAM, {}, encode(changes), JSON)


def clone(stream: str, to: str) -> Request[Stream]:
    """Make a new stream with all that another has learned, labels too."""
    return Request("POST", stream_path(stream, "/clone"), _STREAM, {"to": to}, repeatable=False)


def delete(stream: str, *, silent_seconds: int = 0) -> Request[None]:
    """Delete a stream and all that it has learned; with silent_seconds only if it has been silent for so long."""
    params = {"silent_seconds": str(silent_seconds)} if silent_seconds else {}
    return Request("DELETE", stream_path(stream), nothing, params, repeatable=False)


def reset(stream: str) -> Request[Stream]:
    """Forget what a stream has learned; its config stays and its seq continues."""
    return Request("POST", stream_path(stream, "/reset"), _STREAM, repeatable=False)


def export(stream: str) -> Request[bytes]:
    """Get a stream's whole state as a file that `import_` takes."""
    return Request("GET", stream_path(stream, "/export"), unread)


def import_(stream: str, state: bytes) -> Request[Stream]:
    """Replace a stream's state with an exported one."""
    return Request("PUT", stream_path(stream, "/import"), _STREAM, {}, state, BYTES, repeatable=False)


def streams(page_size: int = 100, *, silent_seconds: int = 0, after: str = "") -> Request[Page[str]]:
    """Iterate over the ids of all streams in order, page by page, or of those that have been silent for so long."""
    silent = {"silent_seconds": str(silent_seconds)} if silent_seconds else {}

    def read(content: bytes) -> Page[str]:
        page = _NAMES(content)
        following = None if page.next is None else streams(page_size, silent_seconds=silent_seconds, after=page.next)
        return Page([entry.stream for entry in page.streams], following)

    return Request("GET", "/streams", read, {"limit": str(page_size), "after": after, **silent})


def summaries(page_size: int = 50, *, after: str = "") -> Request[Page[StreamSummary]]:
    """Iterate over all streams in order of their ids, each with its state in short."""

    def read(content: bytes) -> Page[StreamSummary]:
        page = _SUMMARIES(content)
        return Page(page.streams, None if page.next is None else summaries(page_size, after=page.next))

    return Request("GET", "/streams", read, {"limit": str(page_size), "after": after, "details": "true"})


class _Name(msgspec.Struct):
    stream: str


class _Names(msgspec.Struct):
    streams: list[_Name]
    next: str | None


class _Summaries(msgspec.Struct):
    streams: list[StreamSummary]
    next: str | None


_STREAM = msgspec.json.Decoder(Stream).decode
_ESTIMATE = msgspec.json.Decoder(Estimate).decode
_NAMES = msgspec.json.Decoder(_Names).decode
_SUMMARIES = msgspec.json.Decoder(_Summaries).decode
