"""How much memory and storage a stream takes once it has grown as far as its config allows."""

from dataclasses import dataclass

from app.streams.log.horizon import WATERMARKS
from app.streams.state.memory import SESSION_BYTES
from core import DetectorConfig
from core.sizes import sizes_of

ENTRY_BYTES = 160
"""An event beside its records: names of fields, build, checksum, time."""
WATERMARK_BYTES, WATERMARK_OBJECT_BYTES = 40, 130
"""A watermark of the horizon in a snapshot, and what it takes more in memory."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Upper estimates of one stream: in memory, as a snapshot, and what its log grows by with each sample sent alone.

    Client ids come on top, each with its own length.
    """

    memory_bytes: int
    snapshot_bytes: int
    log_bytes_per_sample: int


def estimate(config: DetectorConfig) -> Estimate:
    """Estimate a stream of this config when all its nodes are there and everything that is bounded is full."""
    detector, watermarks = sizes_of(config), 2 * WATERMARKS
    memory = detector.memory_bytes + SESSION_BYTES + watermarks * (WATERMARK_BYTES + WATERMARK_OBJECT_BYTES)
    return Estimate(memory, detector.snapshot_bytes + watermarks * WATERMARK_BYTES, detector.record_bytes + ENTRY_BYTES)
