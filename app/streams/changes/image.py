"""Import of an image: a new stream whose samples can be labelled as if they had been observed here.

Until its log is complete the stream has a snapshot that nothing can read, so no worker opens it; the import can be
repeated after a crash.
"""

import asyncio
from typing import Final

from app.storage import NO_LABELS, Bound, Entry, Position, Snapshot, StoreCorrupt
from app.streams.allowance import Allowance
from app.streams.batches.timestamps import EARLIEST
from app.streams.errors import StreamAppeared, StreamExists, UnknownStream
from app.streams.log.events import LabelEvent, read_event, read_records
from app.streams.log.horizon import Horizon
from app.streams.open.session import Session
from app.streams.state.checked_image import ImageCheck
from app.streams.state.image import Image
from app.streams.state.state import StreamState

UNFINISHED: Final = b"the import of this stream is not finished: repeat it, or delete the stream"
APPENDS: Final = 64
"""So many entries are on their way to the store at once."""


async def install(session: Session, image: Image, state: StreamState, latest: float, allowance: Allowance) -> None:
    """Make an image a stream; once it is one, a repeat changes nothing. The session's lock is held.

    Raises InvalidSnapshot, and StreamExists for any other stream of that name.
    """
    check, last = ImageCheck(image, state, EARLIEST, latest), None
    for entries in image.entries():
        check.take(entries)
        last = entries[-1] if entries else last
        await asyncio.sleep(0)
    check.finish()
    state.horizon = Horizon(check.begin.seq + 1)  # its samples can be labelled from now on
    if await _is_free(session, last):
        await _create(session, image, state, check.begin, allowance)


async def _is_free(session: Session, last: Entry | None) -> bool:
    """Tell whether there is no stream yet; False if it is this one. Raises StreamExists."""
    try:
        await session.state()
    except UnknownStream:
        return True
    except StoreCorrupt:
        remains = await session.store.inspect(session.stream)
        if remains is None or remains.snapshot is None or remains.snapshot.body != UNFINISHED:
            raise
        await session.store.delete(session.stream, session.leases.token(session.stream))
        session.start_over(None)
        await session.leases.acquire(session.stream)
        return True
    if last is not None and await _holds(session, last):
        return False
    raise StreamExists(session.stream, "state")


async def _holds(session: Session, entry: Entry) -> bool:
    at = entry.position
    before = Position(at.seq, at.sub - 1) if at.sub else Position.before(at.seq)
    return await session.log.entries(before, 1) == [entry]


async def _create(session: Session, image: Image, state: StreamState, begin: Position, allowance: Allowance) -> None:
    store, stream, token = session.store, session.stream, session.leases.token(session.stream)
    bounds = (Bound("", session.settings.max_streams), *allowance.bounds)
    with session.ahead_of_log():
        if not await store.create(stream, Snapshot(begin, UNFINISHED), token, bounds):
            raise StreamAppeared(stream)
        await _append(session, image, begin, token)
        if image.incidents:
            await store.put_incidents(stream, image.incidents, token)
        await store.save_snapshot(stream, Snapshot(state.position, state.to_bytes()), 0, token, as_base=True)
    session.start_over(state)
    session.mark_readable()


async def _append(session: Session, image: Image, position: Position, token: int) -> None:
    """Append the log; each record of a labelled sample goes with the last labels that name the sample."""
    for entries in image.entries():
        for first in range(0, len(entries), APPENDS):
            appends = []
            for entry in entries[first : first + APPENDS]:
                labels = {seq: image.labels[seq] for seq in _named(entry) if seq in image.labels}
                appends.append(session.store.append(session.stream, position, entry, labels or NO_LABELS, token))
                position = entry.position
            for outcome in await asyncio.gather(*appends, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome


def _named(entry: Entry) -> list[int]:
    """Give the samples that labels name."""
    event = read_event(entry.body) if entry.first_seq is None else None
    return read_records(event.records).seq.tolist() if isinstance(event, LabelEvent) else []
