"""What an entry says beside its rows: the bodies of most are equal but for these and their time."""

from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from app.storage import Entry
from app.streams.log.blocks.rows import Widths
from app.streams.log.events import BatchEvent, ConfigEvent, LabelEvent, UnreadableEvent, encode_event, read_event
from core import Records

RAW: Widths = (0, 0, 0)


class Parsed(NamedTuple):
    """An entry taken apart.

    `piece` is what is left of the body without the records, their times and the time it was written `at`; or the body
    as it is, with no records, if this version would write it otherwise.
    """

    piece: bytes
    records: bytes = b""
    n_rows: int = 0
    widths: Widths = RAW
    at: float = 0.0
    is_timed: bool = False

    @property
    def is_raw(self) -> bool:
        """Whether the piece is the whole body."""
        return not self.records


def parse(entry: Entry) -> Parsed:
    """Take an entry apart."""
    try:
        event = read_event(entry.body)
    except UnreadableEvent:
        return Parsed(entry.body)
    shape = None if isinstance(event, ConfigEvent) else Records.shape_of(event.records)
    if isinstance(event, ConfigEvent) or shape is None or shape.n == 0:
        return Parsed(entry.body)
    is_timed = isinstance(event, BatchEvent) and bool(event.timestamps)
    return Parsed(encode_event(_blank(event)), event.records, shape.n, shape[1:], event.at, is_timed)


def _blank(event: BatchEvent | LabelEvent) -> BatchEvent | LabelEvent:
    if isinstance(event, BatchEvent):
        return replace(event, at=0.0, records=b"", timestamps=b"")
    return replace(event, at=0.0, records=b"")


def rebuild(piece: bytes, records: Records, at: float, is_timed: bool) -> bytes:
    """Put a body together again."""
    event = _event_of(piece)
    if isinstance(event, BatchEvent):
        times = records.time.tobytes() if is_timed else b""
        return encode_event(replace(event, at=at, records=records.to_bytes(), timestamps=times))
    return encode_event(replace(event, at=at, records=records.to_bytes()))


@lru_cache(maxsize=64)
def _event_of(piece: bytes) -> BatchEvent | LabelEvent:
    event = read_event(piece)
    if not isinstance(event, BatchEvent | LabelEvent):
        raise UnreadableEvent("an event without rows where one with rows should be")
    return event
