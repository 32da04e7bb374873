"""What a backfill is to do, the same for all of its streams."""

from typing import Any, Final

import msgspec

from app.durations import read_duration
from core import DetectorConfig

MOST_LABELS_AT_ONCE: Final = 1000


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The config of the streams, and how samples and labels come.

    A label is told `delay_samples` samples, or `delay_seconds`, after its sample, or at a time of its own, and then at
    the next multiple of `label_every` samples. at is the time at which everything counts as having come: what is
    computed does not depend on the clock. The log keeps the newest keep_samples samples of each stream.
    """

    config: dict[str, Any]
    at: float
    batch_size: int = 1000
    label_every: int = 100
    delay_samples: int | None = None
    delay_seconds: float | None = None
    keep_samples: int = 100_000
    final_labels: bool = True
    allowance_seconds: float = 3600.0

    def detector_config(self) -> DetectorConfig:
        """Give the config of each stream. Raises InvalidConfig."""
        return DetectorConfig.from_dict(self.config)


def delay_of(text: str) -> dict[str, Any]:
    """Read how late labels are: a number of samples, or a time. Raises ValueError.

    >>> delay_of("100"), delay_of("2h")
    ({'delay_samples': 100}, {'delay_seconds': 7200.0})
    """
    if text.isascii() and text.isdigit():
        return {"delay_samples": int(text)}
    return {"delay_seconds": float(read_duration(text))}
