"""Replaces or deletes a whole stream, in the store and in memory. The session's lock is held."""

import logging
from dataclasses import replace as with_fields

from app.storage import Snapshot
from app.streams.errors import NotSilent, UnknownStream
from app.streams.open.session import Session
from app.streams.state.state import StreamState

logger = logging.getLogger(__name__)


async def replace(session: Session, state: StreamState) -> None:
    """Put another state in the place of the present one; the log begins anew."""
    present = await session.state()
    snapshot, token = Snapshot(state.position, state.to_bytes()), session.leases.token(session.stream)
    with session.ahead_of_log():
        await session.store.replace(session.stream, present.position, snapshot, token)
    session.start_over(state)


async def overwrite(session: Session, state: StreamState) -> None:
    """Put a state in the place of whatever the store holds of the stream, readable or not; the log begins anew."""
    snapshot, token = Snapshot(state.position, state.to_bytes()), session.leases.token(session.stream)
    with session.ahead_of_log():
        await session.store.restore(session.stream, snapshot, token)
    session.start_over(state)
    session.mark_readable()


async def restore_snapshot(session: Session, state: StreamState) -> None:
    """Store the state at the head of the log in place of snapshots that cannot be read; the log stays."""
    with session.ahead_of_log():
        await session.store_snapshot(state, as_base=True)
    # the next load completes what an earlier version wrote
    session.place(None if state.incidents is None or state.recent is None else state)
    session.mark_readable()


async def drop_log(session: Session, state: StreamState, last_seq: int) -> None:
    """Drop the log up to a sample, archived or not; samples up to there cannot be labelled any more."""
    state.horizon = with_fields(state.horizon, oldest_seq=max(state.horizon.oldest_seq, last_seq + 1))
    snapshot, token = Snapshot(state.position, state.to_bytes()), session.leases.token(session.stream)
    with session.ahead_of_log():
        await session.store.save_snapshot(session.stream, snapshot, last_seq + 1, token, as_base=True)


async def delete(session: Session, reason: str = "request") -> bool:
    """Delete the stream; tell whether there was one."""
    await session.leases.acquire(session.stream)
    try:
        async with session.erasing():
            existed = await session.store.delete(session.stream, session.leases.token(session.stream))
        session.metrics.streams_deleted[reason].inc(existed)
        return existed
    finally:
        session.start_over(None)


async def delete_silent(session: Session, seconds: float) -> None:
    """Delete the stream if it is silent for so long, by now, when nobody else can write it. Raises NotSilent."""
    await session.leases.acquire(session.stream)
    silence = (await session.store.silences([session.stream])).get(session.stream)
    if silence is None:
        raise UnknownStream(session.stream)
    if silence.seconds < seconds:
        raise NotSilent(silence.seconds, seconds)
    await delete(session, "silent")
    about = {"stream": session.stream}
    logger.info("stream %s deleted: silent for %.0f s", session.stream, silence.seconds, extra=about)
