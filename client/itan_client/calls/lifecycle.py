"""Streams: create, describe, list, change, clone, reset, delete, export, import."""

from collections.abc import Mapping
from typing import Any

import msgspec

from itan_client.answers.streams import Estimate, Stream, StreamSummary, StreamTotals
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


def streams(
    page_size: int = 100,
    *,
    silent_seconds: int = 0,
    after: str = "",
    prefix: str = "",
    search: str = "",
    order: str = "name",
) -> Request[Page[str]]:
    """Iterate over the ids of streams, page by page.

    The order is `name`, `flagged` (most flagged samples in the last 24 hours first), `incidents` (rarest open incident
    first), `silent` (longest silent first), `review` (most incidents to review first) or `warming_up`.
    """
    silent = {"silent_seconds": str(silent_seconds)} if silent_seconds else {}
    chosen = {**silent, **_chosen(prefix, search, order)}

    def page_after(place: str) -> Request[Page[str]]:
        return Request("GET", "/streams", read, {"limit": str(page_size), "after": place, **chosen})

    def read(content: bytes) -> Page[str]:
        page = _NAMES(content)
        return Page([entry.stream for entry in page.streams], None if page.next is None else page_after(page.next))

    return page_after(after)


def summaries(
    page_size: int = 50, *, after: str = "", prefix: str = "", search: str = "", order: str = "name"
) -> Request[Page[StreamSummary]]:
    """Iterate over streams, each with its state in short, in an order of `streams`."""
    chosen = {"details": "true", **_chosen(prefix, search, order)}

    def page_after(place: str) -> Request[Page[StreamSummary]]:
        return Request("GET", "/streams", read, {"limit": str(page_size), "after": place, **chosen})

    def read(content: bytes) -> Page[StreamSummary]:
        page = _SUMMARIES(content)
        return Page(page.streams, None if page.next is None else page_after(page.next))

    return page_after(after)


def overview(prefix: str = "", *, silent_seconds: int = 3600) -> Request[StreamTotals]:
    """Sum up the streams that the key may read, or those whose ids begin with a prefix."""
    params = {"silent_seconds": str(silent_seconds), **_chosen(prefix)}
    return Request("GET", "/overview", _TOTALS, params)


def _chosen(prefix: str, search: str = "", order: str = "name") -> dict[str, str]:
    """Give those parameters that differ from their defaults: services of earlier versions know none of them."""
    given = {"prefix": prefix, "search": search, "order": "" if order == "name" else order}
    return {name: value for name, value in given.items() if value}


class _Name(msgspec.Struct):
    stream: str


class _Names(msgspec.Struct):
    streams: list[_Name]
    next: str | None


class _Summaries(msgspec.Struct):
    streams: list[StreamSummary]
    next: str | None


_TOTALS = msgspec.json.Decoder(StreamTotals).decode
_STREAM = msgspec.json.Decoder(Stream).decode
_ESTIMATE = msgspec.json.Decoder(Estimate).decode
_NAMES = msgspec.json.Decoder(_Names).decode
_SUMMARIES = msgspec.json.Decoder(_Summaries).decode
