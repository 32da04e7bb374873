"""Creation, reset and import of a stream. The session's lock is held."""

from collections.abc import Callable, Mapping
from typing import Any

from app.storage import START, StoreCorrupt
from app.streams.allowance import UNLIMITED, Allowance
from app.streams.batches.timestamps import EARLIEST
from app.streams.changes.image import install
from app.streams.changes.warm_start import first_detector
from app.streams.errors import StreamExists, UnknownStream
from app.streams.open.replacement import overwrite, replace
from app.streams.open.session import Session
from app.streams.state.image import Image
from app.streams.state.state import StreamState, after, new_state, rebased
from core import Detector, DetectorConfig, InvalidSnapshot, try_out

MAX_IMPORTED_SEQ = 2**52


async def create(
    session: Session,
    given: Mapping[str, Any],
    allowance: Allowance = UNLIMITED,
    made: Callable[[DetectorConfig], Detector] | None = None,
) -> bool:
    """Create a stream with these fields of a config, and a detector made of it; tell whether it is new.

    What is left out comes from the stream's template, then from the profile. Raises StreamExists if there is one with
    another config.
    """
    defaults = await session.defaults()
    config = DetectorConfig.from_dict({**defaults.config, **given})
    try:
        state = await session.state()
    except UnknownStream:
        detector = made(config) if made else await first_detector(session, config, defaults.warm_start)
        await session.create(new_state(detector, START), allowance.bounds)
        return True
    present = state.detector.config
    given_again = config.ordered_as(present) if state.detector.is_warm else config
    refuse_other(session.stream, present.to_dict(), given_again.to_dict())
    return False


async def clone(session: Session, body: bytes, allowance: Allowance = UNLIMITED) -> None:
    """Create a stream from the state of another, as exported. Raises StreamExists."""
    try:
        await session.state()
    except UnknownStream:
        copied = StreamState.from_bytes(body, START)
        await session.create(rebased(copied, START, 1), allowance.bounds)
    else:
        raise StreamExists(session.stream, "state")


def refuse_other(stream: str, present: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise StreamExists unless both configs are the same."""
    differing = [field for field in present if present[field] != given[field]]
    if differing:
        raise StreamExists(stream, ", ".join(differing))


async def reset(session: Session) -> None:
    """Forget what was learned; the config stays and seq goes on."""
    state = await session.state()
    detector = Detector(state.detector.config, first_seq=state.detector.next_seq)
    await replace(session, new_state(detector, after(state.position)))


async def restore(session: Session, body: bytes, allowance: Allowance = UNLIMITED) -> None:
    """Replace the stream, damaged or not, by an exported state, or create it from one; seq never goes back.

    An image, which has a log too, can only become a new stream. Raises StreamExists.
    """
    latest = session.clock.now() + session.settings.timestamp_allowance_seconds
    if Image.is_written_in(body):
        image = Image.from_bytes(body)
        await install(session, image, validated_import(image.state, latest), latest, allowance)
        return
    imported = validated_import(body, latest)
    try:
        present = await session.state()
    except UnknownStream:
        await session.create(rebased(imported, START, 1), allowance.bounds)
    except StoreCorrupt:
        remains = await session.store.inspect(session.stream)
        head = (remains and remains.head) or START
        await overwrite(session, rebased(imported, after(head), head.seq + 1))
    else:
        await replace(session, rebased(imported, after(present.position), present.detector.next_seq))


def validated_import(body: bytes, latest: float) -> StreamState:
    """Read an exported state and try it out. Raises InvalidSnapshot, also for a time after `latest`."""
    imported = StreamState.from_bytes(body, START)
    if imported.detector.next_seq > MAX_IMPORTED_SEQ:
        raise InvalidSnapshot(f"its next seq is above {MAX_IMPORTED_SEQ}")
    for time in (imported.newest_timestamp, imported.detector.newest_time):
        if time is not None and not EARLIEST <= time <= latest:
            raise InvalidSnapshot(f"its newest timestamp, {time!r}, is not from 1990 to {latest!r}")
    try_out(imported.detector)
    return imported
