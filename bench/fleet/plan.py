"""What is measured: how many streams, how fast, on what."""

from dataclasses import dataclass, replace
from typing import Final, Self

MINUTE: Final = 60.0


class NotMeasured(Exception):
    """The run could not go on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet: `per_minute` samples of each stream, `batch` of them a request; steady load for `seconds`."""

    streams: int = 1000
    per_minute: float = 1.0
    batch: int = 1
    features: int = 4
    workers: int = 1
    store: str = ""
    """`redis` and `sqlite`: of its own; a URL: one that is there; empty: the first of these that can be had."""
    seconds: float = 60.0
    training: int = 8000
    """Samples that the model of every stream has learned."""
    cold_streams: int = 10
    cold_samples: int = 1000

    @property
    def interval(self) -> float:
        """Seconds from one request for a stream to its next."""
        return MINUTE * self.batch / self.per_minute

    @property
    def opening_seconds(self) -> float:
        """Time in which every stream is asked for once: its own pace, or faster if that would take too long."""
        return min(self.interval, self.seconds)

    def cut(self) -> Self:
        """Give a small part, to try the measurement itself."""
        return replace(self, streams=50, per_minute=60.0, seconds=1.0, training=300, cold_streams=2, cold_samples=50)
