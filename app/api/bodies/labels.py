"""Reads labels: of single samples, and of all samples of a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from app.api.bodies.columns import Column, read_column, refuse_dropped, refuse_repeated
from app.api.bodies.raw import RawFeedbackBody, decode_short, raw_body
from app.api.bodies.reading import (
    InvalidBody,
    choices_of,
    invalid_form,
    refuse_repeated_names,
    without_bom,
)
from app.api.bodies.records import seconds_of
from app.api.moments import is_plausible, limit_for
from app.api.schemas.samples import FeedbackBody, LabelBody, RangeBody
from app.streams.changes.feedback import LabelRequest
from app.streams.changes.ranges import SETTING, RangeLabel
from app.streams.errors import refuse_beyond
from app.streams.faults import Fault, Faults
from app.streams.log.span import Span

MOST_RANGES = 100
"""Each page of the log is compared with all of them."""

_BODY = msgspec.json.Decoder(FeedbackBody)
_RAW = msgspec.json.Decoder(RawFeedbackBody)
_LABELS = msgspec.json.Decoder(list[LabelBody])
_LABEL = msgspec.json.Decoder(LabelBody)
_RANGES = msgspec.json.Decoder(list[RangeBody])
_RANGE = msgspec.json.Decoder(RangeBody)


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a request."""

    labels: list[LabelRequest]
    ranges: list[RangeLabel]


async def read_labels(body: bytes, limit: int) -> Labels:
    """Read {"labels": [{"id" or "seq": ..., "anomaly": ...}], "ranges": [{"from": ..., "to": ..., "anomaly": ...}]}.

    One of the two must be there. Raises InvalidBody for all labels, or all ranges, that are none.
    """
    body = without_bom(body)
    read, error = decode_short(_BODY, body)
    if read is None:
        raw = await raw_body(_RAW, body, error)
        labels = await read_column(LABELS, raw.labels, limit)
        ranges = await read_column(RANGES, raw.ranges, MOST_RANGES)
    else:
        labels, ranges = given(read.labels), given(read.ranges)
        refuse_beyond(limit, len(labels), "labels", LABELS.setting)
        refuse_beyond(MOST_RANGES, len(ranges), "ranges")
        n_names = sum(part is not UNSET for part in (read.labels, read.ranges))
        refuse_repeated_names(body, n_names + count_fields(labels) + count_range_fields(ranges), ids_of(labels))
    if not labels and not ranges:
        raise InvalidBody("labels", None, "given, or ranges")
    refuse_unnamed(labels)
    return Labels([label_request(label) for label in labels], range_labels(ranges))


def given(part: list[Any] | UnsetType) -> list[Any]:
    """Give a part of a body; nothing if it was left out."""
    return [] if part is UNSET else part


def refuse_unnamed(labels: Iterable[LabelBody]) -> None:
    """Raise InvalidBody for labels that name no sample."""
    faults = Faults()
    for i, label in enumerate(labels):
        if label.id is UNSET and label.seq is UNSET:
            faults.add(i, f"labels[{i}]", {"anomaly": label.anomaly}, "an object with id or seq")
    InvalidBody.for_any(faults)


def label_request(given: LabelBody) -> LabelRequest:
    """Give a label by its id, or else by its seq."""
    if given.id is not UNSET:
        return LabelRequest(given.anomaly, client_id=given.id)
    return LabelRequest(given.anomaly, seq=None if given.seq is UNSET else given.seq)


def read_all(text: bytes) -> list[LabelBody]:
    """Read an array of labels; ValueError if one may name a field twice."""
    labels = _LABELS.decode(text)
    refuse_dropped(text, count_fields(labels), ids_of(labels))
    return labels


def read_one(text: bytes) -> LabelBody:
    """Read one label; ValueError if it names a field twice."""
    given = _LABEL.decode(text)
    refuse_repeated(text, count_fields([given]), ids_of([given]))
    return given


def count_fields(labels: Iterable[LabelBody]) -> int:
    """Count the names of fields that labels were read of."""
    return sum(1 + (given.id is not UNSET) + (given.seq is not UNSET) for given in labels)


def ids_of(labels: Iterable[LabelBody]) -> Iterable[str]:
    """Give the ids of the labels that have one."""
    return (given.id for given in labels if given.id is not UNSET)


def range_labels(ranges: Iterable[RangeBody]) -> list[RangeLabel]:
    """Give ranges with their times in epoch seconds. Raises InvalidBody for times that no sample can have."""
    faults, found = Faults(), []
    for i, range_ in enumerate(ranges):
        first, last = seconds_of(range_.begin), seconds_of(range_.end)
        for name, seconds in (("from", first), ("to", last)):
            if not is_plausible(seconds):
                faults.add(i, f"ranges[{i}].{name}", seconds, limit_for(seconds))
        if first > last:
            faults.add(i, f"ranges[{i}].from", first, "not after to")
        found.append(RangeLabel(range_.anomaly, Span(first, last), flagged_only=range_.only == "flagged"))
    InvalidBody.for_any(faults)
    return found


def read_ranges(text: bytes) -> list[RangeBody]:
    """Read an array of ranges; ValueError if one may name a field twice."""
    ranges = _RANGES.decode(text)
    refuse_dropped(text, count_range_fields(ranges), ())
    return ranges


def read_range(text: bytes) -> RangeBody:
    """Read one range; ValueError if it names a field twice."""
    range_ = _RANGE.decode(text)
    refuse_repeated(text, count_range_fields([range_]), ())
    return range_


def count_range_fields(ranges: Iterable[RangeBody]) -> int:
    """Count the names of fields of ranges; too few if a time was a text, or a default was given: both are rare."""
    return sum(3 + (range_.only != "flagged") for range_ in ranges)


def range_fault(tree: Any) -> Fault:
    """Say what is wrong with a range."""
    return element_fault(tree, RangeBody, 'a range such as {"from": 1800000000, "to": 1800000600, "anomaly": true}')


def label_fault(tree: Any) -> Fault:
    """Say what is wrong with a label."""
    return element_fault(tree, LabelBody, 'a label such as {"seq": 17, "anomaly": true}')


def element_fault(tree: Any, form: type[msgspec.Struct], example: str) -> Fault:
    """Say why a tree is not of a form."""
    try:
        msgspec.convert(tree, form)
    except msgspec.ValidationError as error:
        refused = invalid_form(str(error), tree, "", form.__struct_encode_fields__, choices_of(form))
        return Fault(f".{refused.field}" if refused.field != "body" else "", refused.value, refused.limit)
    return Fault("", tree, example)


LABELS = Column("labels", read_all, read_one, label_fault, InvalidBody, SETTING)
RANGES = Column("ranges", read_ranges, read_range, range_fault, InvalidBody, "")
