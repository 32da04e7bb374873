"""What a stream has in memory, and its snapshot as bytes."""

from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np

from app.storage.base import Position
from app.streams.horizon import Horizon
from core import Detector, InvalidSnapshot
from core.snapshot import decode, encode

KIND = "stream"
VERSION = 1


class Header(msgspec.Struct, frozen=True):
    """What a snapshot says beside the engine."""

    oldest_seq: int
    marks: list[tuple[int, float]]
    newest_timestamp: float | None


@dataclass(slots=True)
class StreamState:
    """A detector and its place in the log."""

    detector: Detector
    position: Position
    horizon: Horizon
    newest_timestamp: float | None = None
    unsaved_events: int = 0

    def to_bytes(self, horizon: Horizon | None = None) -> bytes:
        """Write the state; it continues bit for bit."""
        kept = horizon or self.horizon
        header = Header(kept.oldest_seq, kept.marks, self.newest_timestamp)
        meta: dict[str, Any] = msgspec.to_builtins(header)
        return encode(KIND, VERSION, meta, {"engine": np.frombuffer(self.detector.to_bytes(), dtype=np.uint8)})

    @classmethod
    def from_bytes(cls, body: bytes, position: Position) -> "StreamState":
        """Read a state, or raise InvalidSnapshot."""
        meta, arrays = decode(body, KIND, VERSION)
        header = read_header(meta)
        if "engine" not in arrays:
            raise InvalidSnapshot("it holds no engine")
        detector = Detector.from_bytes(arrays["engine"].tobytes())
        return cls(detector, position, Horizon(header.oldest_seq, header.marks), header.newest_timestamp)


def new_state(detector: Detector, position: Position) -> StreamState:
    """Give the state of a stream that begins (anew) with the detector's next sample."""
    return StreamState(detector, position, Horizon(detector.next_seq))


def costs_of(detector: Detector) -> dict[str, float | None]:
    """Give what the decisions on labelled samples turned out to cost."""
    costs = detector.costs()
    return {**asdict(costs), "labels": costs.labels}


def read_header(meta: dict[str, Any]) -> Header:
    """Check what stands beside the engine."""
    try:
        return msgspec.convert(meta, Header)
    except msgspec.ValidationError as error:
        raise InvalidSnapshot(str(error)) from error
