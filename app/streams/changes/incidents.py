"""Incidents that opened and ended: followed for the index, counted, and told in the service's log."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from app.streams.log.incidents import Incident, read_incident
from app.streams.open.session import Session
from app.streams.state.state import StreamState
from core import INCIDENT_EVENTS, Records

ACCEPTED = INCIDENT_EVENTS.index("accepted")
MOST_TOLD = 5

logger = logging.getLogger(__name__)


async def find_labelled(session: Session, records: Mapping[int, Records]) -> dict[int, Incident]:
    """Read the incidents that these samples belong to from the index."""
    seqs = {int(record.incident[0]) for record in records.values()} - {0}
    found = await session.store.find_incidents(session.stream, sorted(seqs)) if seqs else {}
    return {seq: read_incident(row) for seq, row in found.items()}


def count_observed(session: Session, state: StreamState, learned: Records) -> None:
    """Count what samples did to incidents, before the figures follow.

    A sample says one thing at most: where an incident opens, the one before may have ended by its time. So the closed
    are what is left of those that were open or were opened.
    """
    if not np.count_nonzero(learned.event):
        return
    happened = np.flatnonzero(learned.event)
    events, ids = learned.event[happened].tolist(), learned.incident[happened].tolist()
    opened, accepted = state.detector.n_incidents - state.figures.incidents, events.count(ACCEPTED)
    closed = opened - accepted + state.figures.is_in_incident - bool(state.detector.incident)
    count(session, opened=opened, closed=closed, accepted=accepted)
    tell(session, [f"incident {i} {INCIDENT_EVENTS[event]}" for i, event in zip(ids, events, strict=True)])


def count_by_labels(session: Session, accepted: Sequence[int], reopened: int) -> None:
    """Count incidents that labels ended; or opened again, if more labels came before the next sample."""
    if reopened:
        count(session, opened=1)
        tell(session, [f"incident {reopened} opened again by a label"])
    if accepted:
        count(session, accepted=len(accepted))
        tell(session, [f"incident {i} accepted by a label" for i in accepted])


def count(session: Session, **counts: int) -> None:
    """Count events of incidents by their names."""
    for event, n in counts.items():
        session.metrics.incidents[event].inc(n)


def tell(session: Session, events: Sequence[str]) -> None:
    """Write one line for all of them."""
    more = f", and {len(events) - MOST_TOLD} more" if len(events) > MOST_TOLD else ""
    about = {"stream": session.stream}
    logger.info("stream %s: %s%s", session.stream, ", ".join(events[:MOST_TOLD]), more, extra=about)
