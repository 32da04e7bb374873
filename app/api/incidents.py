"""Incidents as answers have them: null where core says 0."""

from collections.abc import Iterable
from typing import Final, Literal

Event = Literal["opened", "closed", "accepted"]
EVENTS: Final[tuple[Event | None, ...]] = (None, "opened", "closed", "accepted")
"""By their places in core.INCIDENT_EVENTS."""


def incident_ids(ids: Iterable[int]) -> list[int | None]:
    """Give the incident of each sample."""
    return [incident or None for incident in ids]


def incident_events(events: Iterable[int]) -> list[Event | None]:
    """Give what happened to an incident at each sample."""
    return [EVENTS[event] for event in events]
