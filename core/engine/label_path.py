"""The path of a label: validate, then correct the threshold, the costs, the density, and what scores make of labels.

A label comes after the decision, maybe hours later. The record of its sample has kept all that is needed: score,
decision, and how the sample was learned.
"""

from collections.abc import Sequence

import numpy as np

from core.engine.learning import evaluate, relearn, remember, surprise
from core.engine.scales import settle
from core.engine.state import DetectorState
from core.records import Records
from core.results import Feedback
from core.validation import checked_labels


def feedback(state: DetectorState, records: Records, labels: Sequence[bool | None]) -> Feedback:
    """Learn labels, one a record, one after the other, as Detector.feedback says."""
    new = checked_labels(labels, records.seq, state.first_seq, state.next_seq)
    before, open_before = state.next_threshold, state.incident
    told = records.widened(state.density.growth.most_sides, state.config.n_columns)
    outcomes, retracted = [], np.zeros(len(told), bool)
    latest: dict[int, int] = {}
    for i, label in enumerate(new):
        seq = int(told.seq[i])
        _refresh(state, told, i, latest.get(seq))
        latest[seq] = i
        old = int(told.label[i])
        if told[i].held_out[0]:
            outcomes.append("not_learned")
            continue
        outcomes.append(_outcome(old, label))
        retracted[i] = _relabel(state, told[i], label)
        if state.ready:
            settle(state)
        _follow_incident(state, told[i], old)
        _keep_warm(state, told[i])
    if state.ready:
        state.rule.follow_labels()
    accepted = [open_before] if open_before and not state.incident else []
    return Feedback(outcomes, retracted, before, state.next_threshold, accepted, told.compact())


def _refresh(state: DetectorState, told: Records, i: int, latest: int | None) -> None:
    """Bring record i up to date: an earlier label in this call, or the end of the warm-up, may have changed it."""
    if latest is not None:
        told.rows[i] = told.rows[latest]
    elif (place := _place_in_warmup(state, told[i])) is not None:
        told.put(i, state.warmup[place])


def _relabel(state: DetectorState, record: Records, label: int) -> bool:
    """Set the label of one record and correct everything by it; say whether its sample left the density."""
    row = record.rows[0]
    old, row["label"] = int(row["label"]), label
    if label == old or not state.ready:
        return False
    if row["ready"]:
        state.rule.label(int(row["seq"]), *_telling(state, record), label)
        state.costs.relabel(float(row["score"]), bool(row["is_anomaly"]), old, label)
    retracted = relearn(state, record)
    remember(state, record)
    return retracted


def _telling(state: DetectorState, record: Records) -> tuple[float, float]:
    """The score by which a label moves the threshold, and its level: those of the decision.

    A normal sample that was rare then may be ordinary now, since the model has learned a new level; then today's.
    """
    row, now = record.rows[0], state.rule.level
    score, level = float(row["score"]), float(row["level"])
    if row["label"] >= 0 or now is None or not state.rule.looks_rare(score - level):
        return score, level
    batch = evaluate(state, record.x, record.time)
    today = float(state.resemblance.raised(batch.learned, surprise(state, batch))[0])
    return (today, now) if today - now < score - level else (score, level)


def _follow_incident(state: DetectorState, record: Records, old: int) -> None:
    """Let the open incident know of a new label of a sample of it."""
    seq, label = int(record.incident[0]), int(record.label[0])
    if label != old and seq != 0 and seq == state.rule.incidents.id:
        state.rule.incidents.label(label, old, flagged=bool(record.is_anomaly[0]))


def _keep_warm(state: DetectorState, record: Records) -> None:
    """Keep a changed record if its sample is one of the warm-up."""
    place = _place_in_warmup(state, record)
    if place is not None:
        state.warmup = state.warmup.replaced(place, record)


def _place_in_warmup(state: DetectorState, record: Records) -> int | None:
    """The place of a sample among those of the warm-up; None if it is not one of them."""
    kept, seq = state.warmup.seq, int(record.seq[0])
    place = int(np.searchsorted(kept, seq))
    return place if place < len(kept) and kept[place] == seq else None


def _outcome(old: int, new: int) -> str:
    """Say what a label did: applied, duplicate, revised or withdrawn."""
    if old == new:
        return "duplicate"
    if new == 0:
        return "withdrawn"
    return "applied" if old == 0 else "revised"
