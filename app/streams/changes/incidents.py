"""Incidents that opened and ended: followed for the index, counted, and told in the service's log."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from app.storage import Entry
from app.streams.log.events import NO_CAUSES, Cause, Causes, Label
from app.streams.log.explanations import Explained, explained_of
from app.streams.log.incidents import Incident, read_incident
from app.streams.open.session import Session
from app.streams.state.state import StreamState
from core import INCIDENT_EVENTS, Detector, Records

ACCEPTED = INCIDENT_EVENTS.index("accepted")
MOST_TOLD = 5
MOST_EXPLAINED, MOST_CAUSES = 16, 5
NO_INCIDENTS: Sequence[Incident] = ()

logger = logging.getLogger(__name__)


def is_in_incident(state: StreamState, learned: Records) -> bool:
    """Tell whether samples may change an incident."""
    assert state.incidents is not None
    return state.incidents.current is not None or bool(learned.incident.any())


def causes_in(detector: Detector, learned: Records, explained: Mapping[int, Explained]) -> Causes:
    """Give the main features of the newest samples that opened an incident, by seq.

    If the request did not ask for explanations, they are by the model that has just learned the request.
    """
    opened = np.flatnonzero((learned.incident == learned.seq) & (learned.incident > 0))[-MOST_EXPLAINED:]
    if not len(opened):
        return NO_CAUSES
    opening = learned[opened]
    seqs = opening.seq.tolist()
    if not all(seq in explained for seq in seqs):
        times = None if detector.config.calendar is None else opening.time
        explained = dict(zip(seqs, explained_of(detector.explain(opening.x, times)), strict=True))
    return {seq: main_causes(explained[seq]) for seq in seqs}


def main_causes(explained: Explained) -> list[Cause]:
    """Give the features that add most to a score, the greatest first."""
    known = [(added, feature) for feature, added in enumerate(explained.contributions) if added is not None]
    greatest = sorted(known, key=lambda one: -one[0])[:MOST_CAUSES]
    return [Cause(feature, added, explained.expected[feature]) for added, feature in greatest]


def follow_observed(state: StreamState, learned: Records, at: float, causes: Causes) -> list[Incident]:
    """Follow the incidents of samples that came at a time; give those whose rows in the index change."""
    assert state.incidents is not None
    assert state.recent is not None
    state.recent.note_flagged(learned, at)
    return state.incidents.observe(learned, at, causes, state.detector.config)


async def find_labelled(session: Session, records: Mapping[int, Records]) -> dict[int, Incident]:
    """Read the incidents that these samples belong to from the index."""
    seqs = {int(record.incident[0]) for record in records.values()} - {0}
    found = await session.store.find_incidents(session.stream, sorted(seqs)) if seqs else {}
    return {seq: read_incident(row) for seq, row in found.items()}


def follow_labelled(
    state: StreamState, before: Records, labels: Sequence[Label], entry: Entry, at: float, known: Mapping[int, Incident]
) -> list[Incident]:
    """Follow what labels make of incidents; give those whose rows in the index change."""
    assert state.incidents is not None
    assert state.recent is not None
    state.recent.label(before, labels)
    return state.incidents.label(before, labels, at, entry.position, known)


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
