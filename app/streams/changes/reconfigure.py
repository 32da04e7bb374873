"""Changing the config of a stream that goes on with what it has learned. The session's lock is held."""

from collections.abc import Mapping
from typing import Any

from app.storage import Entry
from app.streams.log.events import config_body
from app.streams.open.session import Session
from app.streams.state.state import after


async def reconfigure(session: Session, changes: Mapping[str, Any]) -> None:
    """Change fields of the config, and log those that differ. Raises InvalidConfig, and changes nothing."""
    state = await session.state_to_change()
    session.backoff.check()
    # from here on the engine is ahead of the log
    change = state.reconfigure(changes)
    if not change:
        return
    with session.ahead_of_log():
        await session.append(state, Entry(after(state.position), config_body(change, session.clock.steady())))
    state.update_figures()
    state.figures.take_costs(state.detector.costs())
