"""The events of a stream's log, batches of samples, labels and changes of the config, as bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from app.build import BUILD
from app.streams.log.explanations import Explained
from core import ConfigChange, InvalidSnapshot, Records

VERSION = 1
NOTHING_EXPLAINED: Mapping[int, Explained] = {}

Label = bool | None


class Cause(msgspec.Struct, frozen=True, array_like=True):
    """A feature by its number: the nats that it added to a score, and the value that was expected."""

    feature: int
    contribution: float
    expected: float


Causes = Mapping[int, list[Cause]]
NO_CAUSES: Causes = {}


class BatchEvent(msgspec.Struct, frozen=True, tag_field="kind", tag="batch"):
    """Samples with the answers given to them at the time `at`; `timestamps` are float64 epoch seconds, or empty.

    `explained` holds the explanations of flagged samples by seq, if the request asked for them: a later model would
    explain them otherwise. `causes` are the main features of samples that opened an incident, by seq. `build` is the
    version that computed the answers; early versions did not log it.
    """

    version: int
    at: float
    records: bytes
    timestamps: bytes = b""
    explained: dict[int, Explained] = {}
    build: str = ""
    causes: dict[int, list[Cause]] = {}


class LabelEvent(msgspec.Struct, frozen=True, tag_field="kind", tag="labels"):
    """Labels, the records of their samples before they were applied, and the incidents that they ended."""

    version: int
    at: float
    records: bytes
    labels: list[Label]
    accepted: list[int] = []


class ConfigEvent(msgspec.Struct, frozen=True, tag_field="kind", tag="config"):
    """Fields of the stream's config that were changed, as they were before and after."""

    version: int
    at: float
    before: dict[str, Any]
    after: dict[str, Any]


Event = BatchEvent | LabelEvent | ConfigEvent
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Event)


class UnreadableEvent(ValueError):
    """Bytes in the log that this version of the service did not write."""


def encode_event(event: Event) -> bytes:
    """Write an event."""
    return _ENCODER.encode(event)


def batch_body(
    records: Records,
    timestamps: npt.NDArray[np.float64] | None,
    at: float,
    explained: Mapping[int, Explained] = NOTHING_EXPLAINED,
    causes: Causes = NO_CAUSES,
) -> bytes:
    """Write a batch."""
    stamps = b"" if timestamps is None else timestamps.astype("<f8").tobytes()
    return encode_event(BatchEvent(VERSION, at, records.to_bytes(), stamps, dict(explained), BUILD, dict(causes)))


def label_body(records: Records, labels: Sequence[Label], at: float, accepted: Sequence[int] = ()) -> bytes:
    """Write a label event."""
    return encode_event(LabelEvent(VERSION, at, records.to_bytes(), list(labels), list(accepted)))


def config_body(change: ConfigChange, at: float) -> bytes:
    """Write a change of the config."""
    return encode_event(ConfigEvent(VERSION, at, dict(change.before), dict(change.after)))


def read_event(body: bytes) -> Event:
    """Read an event of the log, or raise UnreadableEvent."""
    try:
        event: Event = _DECODER.decode(body)
    except msgspec.DecodeError as error:
        raise UnreadableEvent(str(error)) from error
    if event.version != VERSION:
        raise UnreadableEvent(f"an event has version {event.version}, but this build reads only {VERSION}")
    return event


def read_records(blob: bytes) -> Records:
    """Read the records of an event, or raise UnreadableEvent."""
    try:
        return Records.from_bytes(blob)
    except InvalidSnapshot as error:
        raise UnreadableEvent(str(error)) from error


def read_all_records(blobs: Sequence[bytes]) -> Records:
    """Read the records of several events of one stream together, or raise UnreadableEvent."""
    try:
        return Records.all_from_bytes(blobs)
    except InvalidSnapshot as error:
        raise UnreadableEvent(str(error)) from error


def read_batch(body: bytes) -> BatchEvent:
    """Read a batch, or raise UnreadableEvent."""
    event = read_event(body)
    if not isinstance(event, BatchEvent):
        raise UnreadableEvent("an event without samples where a batch should be")
    return event


def read_timestamps(event: BatchEvent) -> npt.NDArray[np.float64] | None:
    """Give the timestamps of a batch; None if it came without."""
    return np.frombuffer(event.timestamps, dtype="<f8") if event.timestamps else None
