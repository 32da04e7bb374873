"""Late labels: each is matched to its sample, applied once, and logged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.metrics import LABEL_OUTCOMES
from app.streams.changes import incidents
from app.streams.changes.metrics import count_labelled
from app.streams.log.events import Label
from app.streams.open.session import Session
from app.streams.slices import NoteWork, copy_of, feedback_slices, join_slices, slices, unnoted
from app.streams.state.state import StreamState, costs_of
from app.streams.state.steps import LabelChange, log_labels
from core import Detector, Records


@dataclass(frozen=True, slots=True)
class LabelRequest:
    """A label for the sample of an id, or else of a seq; None withdraws the label."""

    anomaly: Label
    seq: int | None = None
    client_id: str | None = None


@dataclass(slots=True)
class FeedbackResult:
    """The outcome of each label, the incidents that they ended, and the state of the stream after them."""

    seq: list[int | None]
    outcome: list[str]
    retracted: list[bool | None]
    outcomes: dict[str, int]
    accepted: list[int]
    threshold_before: float
    threshold_after: float
    oldest_seq: int
    costs: dict[str, Any]


@dataclass(slots=True)
class Targets:
    """The samples that labels are for, by key: a seq, or an unknown id; and the incidents that the labels ended.

    Samples below oldest_seq have expired.
    """

    keys: list[int | str]
    oldest_seq: int
    outcome: dict[int | str, str] = field(default_factory=dict)
    retracted: dict[int | str, bool] = field(default_factory=dict)
    accepted: list[int] = field(default_factory=list)

    def undecided(self) -> list[int]:
        """Give the seqs that have no outcome yet, in the order they first appear."""
        return [key for key in dict.fromkeys(self.keys) if isinstance(key, int) and key not in self.outcome]

    def mark(self, keys: Sequence[int | str], outcome: str) -> None:
        """Set an outcome."""
        self.outcome.update(dict.fromkeys(keys, outcome))


async def label(session: Session, labels: Sequence[LabelRequest], *, dry_run: bool = False) -> FeedbackResult:
    """Apply labels to samples observed earlier. The session's lock is held."""
    state = await session.state_to_change()
    targets = await resolve(session, state, labels)
    records = await session.reader.current_records(targets.undecided())
    targets.mark([seq for seq in targets.undecided() if seq not in records], "expired")
    targets.mark([seq for seq in targets.undecided() if records[seq].held_out[0]], "not_learned")
    wanted = {key: request.anomaly for key, request in zip(targets.keys, labels, strict=True)}
    if dry_run:
        detector = copy_of(state.detector)
        await give_labels(detector, targets, records, wanted, unnoted)
        return summary(detector, state.detector.threshold, targets)
    return await apply(session, state, targets, records, wanted)


async def resolve(session: Session, state: StreamState, labels: Sequence[LabelRequest]) -> Targets:
    """Find the seq of each label, and set the outcome of labels without a sample and of contradicting ones."""
    ids = [request.client_id for request in labels if request.client_id is not None]
    seqs = await session.reader.seqs(ids, 0)
    targets = Targets([key_of(request, seqs) for request in labels], session.oldest_to_label(state))
    named = [key for key in targets.keys if isinstance(key, int)]
    targets.mark([key for key in targets.keys if isinstance(key, str)], "unknown")
    targets.mark([seq for seq in named if seq < targets.oldest_seq], "expired")
    targets.mark([seq for seq in named if seq >= state.detector.next_seq], "unknown")
    undecided = set(targets.undecided())
    targets.mark([key for key in contradicted(targets.keys, labels) if key in undecided], "conflict")
    return targets


def key_of(request: LabelRequest, seqs: Mapping[str, int]) -> int | str:
    """Give the seq that a label is for, or its id if that is unknown."""
    if request.client_id is not None:
        return seqs.get(request.client_id, request.client_id)
    assert request.seq is not None  # the body's schema asks for one of the two
    return request.seq


def contradicted(keys: Sequence[int | str], labels: Sequence[LabelRequest]) -> set[int | str]:
    """Give the samples with different labels in one request."""
    first: dict[int | str, Label] = {}
    return {
        key
        for key, request in zip(keys, labels, strict=True)
        if first.setdefault(key, request.anomaly) is not request.anomaly
    }


async def give_labels(
    detector: Detector,
    targets: Targets,
    records: Mapping[int, Records],
    wanted: Mapping[int | str, Label],
    note_work: NoteWork,
) -> LabelChange | None:
    """Give the detector the labels that have no outcome yet; None if there are none."""
    seqs = targets.undecided()
    if not seqs:
        return None
    before = await join_slices([records[seq] for seq in seqs])
    labels = [wanted[seq] for seq in seqs]
    result = await feedback_slices(detector, before, labels, note_work)
    targets.outcome.update(zip(seqs, result.outcome, strict=True))
    targets.retracted.update(zip(seqs, result.retracted.tolist(), strict=True))
    targets.accepted += result.accepted
    is_new = any(outcome != "duplicate" for outcome in result.outcome)
    return LabelChange(before, labels, result.records, result.accepted, result.threshold_before, is_new)


async def apply(
    session: Session,
    state: StreamState,
    targets: Targets,
    records: Mapping[int, Records],
    wanted: Mapping[int | str, Label],
) -> FeedbackResult:
    """Apply labels and log them; labels that change nothing are not logged."""
    session.backoff.check()
    known = await incidents.find_labelled(session, records)
    threshold_before, incident_before = state.detector.threshold, state.detector.incident
    with session.ahead_of_log():
        change = await give_labels(state.detector, targets, records, wanted, state.note_work)
        if change is not None and change.is_new:
            entry, changed = log_labels(state, change, session.clock.steady(), known)
            await session.append(state, entry, await current_records(change.after), changed)
    labelled = summary(state.detector, threshold_before, targets)
    for outcome, count in labelled.outcomes.items():
        session.metrics.labels[outcome].inc(count)
    if change is not None and change.is_new:
        incidents.count_by_labels(session, change.accepted, 0 if incident_before else state.detector.incident)
        count_labelled(session, state, targets.outcome, targets.retracted, change.after)
    return labelled


async def current_records(records: Records) -> dict[int, bytes]:
    """Give the records as bytes, by seq."""
    kept: dict[int, bytes] = {}
    async for part in slices(len(records)):
        for alike in records[part].by_width():
            kept.update((int(alike.seq[i]), alike[i].to_bytes()) for i in range(len(alike)))
    return kept


def summary(detector: Detector, threshold_before: float, targets: Targets) -> FeedbackResult:
    """Give the outcome of each label; a sample counts once, however many labels name it."""
    counts = Counter(targets.outcome.values())
    return FeedbackResult(
        seq=[key if isinstance(key, int) else None for key in targets.keys],
        outcome=[targets.outcome[key] for key in targets.keys],
        retracted=[targets.retracted.get(key) for key in targets.keys],
        outcomes={outcome: counts[outcome] for outcome in LABEL_OUTCOMES},
        accepted=targets.accepted,
        threshold_before=threshold_before,
        threshold_after=detector.threshold,
        oldest_seq=targets.oldest_seq,
        costs=costs_of(detector),
    )
