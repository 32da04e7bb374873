"""Samples of the log, and what happens to a stream from now on."""

import msgspec

from itan_client.answers.history import History, InspectedSample, Review
from itan_client.request import Request, flag, stream_path, unread


def history(
    stream: str, first: int | None = None, last: int | None = None, *, points: int = 2000, values: bool = False
) -> Request[History]:
    """Get the samples from one seq to another, thinned to so many points; by default the newest."""
    bounds = {name: str(seq) for name, seq in (("from", first), ("to", last)) if seq is not None}
    params = {"points": str(points), "values": flag(values), **bounds}
    return Request("GET", stream_path(stream, "/history"), _HISTORY, params)


def sample(stream: str, seq: int) -> Request[InspectedSample]:
    """Get one sample, with what the present model makes of it."""
    return Request("GET", stream_path(stream, f"/samples/{seq}"), _SAMPLE)


def review(stream: str, limit: int = 50) -> Request[Review]:
    """Get the samples that a label would tell most about: flagged ones and close calls without one."""
    return Request("GET", stream_path(stream, "/review"), _REVIEW, {"limit": str(limit)})


def events(stream: str, after: str = "", *, values: bool = False) -> Request[bytes]:
    """Ask for what happens to a stream from now on, or from a position of its log: an answer without an end."""
    return Request("GET", stream_path(stream, "/events"), unread, {"after": after, "values": flag(values)})


_HISTORY = msgspec.json.Decoder(History).decode
_SAMPLE = msgspec.json.Decoder(InspectedSample).decode
_REVIEW = msgspec.json.Decoder(Review).decode
