"""What an operator does about a damaged stream."""

import msgspec

from itan_client.answers.streams import Checked, Repaired, Stream
from itan_client.request import Request, flag, stream_path


def check(stream: str) -> Request[Checked]:
    """Replay everything stored of a stream, and get what is wrong with it."""
    return Request("GET", stream_path(stream, "/check"), _CHECKED)


def repair(stream: str, *, lossy: bool = False) -> Request[Repaired]:
    """Repair a damaged stream; `lossy` allows that samples, or the log with its ids, are lost."""
    return Request("POST", stream_path(stream, "/repair"), _REPAIRED, {"lossy": flag(lossy)}, repeatable=False)


def accept(stream: str) -> Request[Stream]:
    """Accept what a replay or a repair has changed."""
    return Request("POST", stream_path(stream, "/accept"), _STREAM)


_CHECKED = msgspec.json.Decoder(Checked).decode
_REPAIRED = msgspec.json.Decoder(Repaired).decode
_STREAM = msgspec.json.Decoder(Stream).decode
