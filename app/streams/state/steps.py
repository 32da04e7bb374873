"""What the log says of samples and labels that a detector has taken, and what these make of the stream's incidents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.storage import Entry, Position
from app.streams.log.events import NO_CAUSES, NOTHING_EXPLAINED, Cause, Causes, Label, batch_body, label_body
from app.streams.log.explanations import Explained, explained_of
from app.streams.log.incidents import Incident
from app.streams.state.state import StreamState
from core import Detector, Records

MOST_EXPLAINED, MOST_CAUSES = 16, 5
NO_INCIDENTS: Sequence[Incident] = ()


def log_samples(
    state: StreamState,
    learned: Records,
    ids: tuple[str, ...],
    times: npt.NDArray[np.float64] | None,
    at: float,
    explained: Mapping[int, Explained] = NOTHING_EXPLAINED,
) -> tuple[Entry, Sequence[Incident]]:
    """Give what the log says of samples that came at a time, and the incidents whose rows in the index change."""
    first, last = int(learned.seq[0]), int(learned.seq[-1])
    causes, incidents = NO_CAUSES, NO_INCIDENTS
    assert state.recent is not None
    state.recent.note_newest(learned, at)
    if is_in_incident(state, learned):
        causes = causes_in(state.detector, learned, explained)
        incidents = follow_observed(state, learned, at, causes)
    return Entry(Position(last, 0), batch_body(learned, times, at, explained, causes), first, ids), incidents


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


@dataclass(frozen=True, slots=True)
class LabelChange:
    """Records before and after labels were applied to them, and the incidents that the labels ended."""

    before: Records
    labels: list[Label]
    after: Records
    accepted: list[int]
    threshold_before: float
    is_new: bool


def log_labels(
    state: StreamState, change: LabelChange, at: float, known: Mapping[int, Incident]
) -> tuple[Entry, Sequence[Incident]]:
    """Give what the log says of labels that came at a time, and the incidents whose rows in the index change.

    known holds incidents that are over, by seq.
    """
    assert state.incidents is not None
    assert state.recent is not None
    head = state.position  # labels come after the newest samples
    body = label_body(change.before, change.labels, at, change.accepted)
    entry = Entry(Position(head.seq, head.sub + 1), body)
    state.recent.label(change.before, change.labels)
    return entry, state.incidents.label(change.before, change.labels, at, entry.position, known)
