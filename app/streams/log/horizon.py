"""Which samples can still be labelled, and how far the log may be trimmed."""

from dataclasses import dataclass, field
from itertools import takewhile

WATERMARKS = 256
STEP, SILENT_STEP = 10, 2


@dataclass(slots=True)
class Horizon:
    """The oldest sample that the log keeps, and watermarks (seq, time) that tell how old samples are.

    A watermark says: every sample below this seq had been observed by that time.
    """

    oldest_seq: int
    watermarks: list[tuple[int, float]] = field(default_factory=list)

    def oldest_to_label(self, next_seq: int, samples: int) -> int:
        """Give the oldest sample that can be labelled, even if the log still holds older ones."""
        return max(self.oldest_seq, next_seq - samples)

    def first_since(self, time: float) -> int:
        """Give a sample, the oldest or a later one, before which all had been observed by this time."""
        earlier = takewhile(lambda mark: mark[1] < time, self.watermarks)
        return max((seq for seq, _ in earlier), default=self.oldest_seq)

    def observed_before(self, time: float) -> int:
        """Give the newest sample known so far before which all had been observed by this time; 0 if none is known."""
        return max((seq for seq, at in self.watermarks if at <= time), default=0)

    def with_last(self, next_seq: int, at: float) -> "Horizon":
        """Give the horizon with a watermark behind all samples; the last one was observed at this time."""
        earlier = [watermark for watermark in self.watermarks if watermark[0] < next_seq and watermark[1] <= at]
        return Horizon(self.oldest_seq, [*earlier, (next_seq, at)][-2 * WATERMARKS :])

    def advanced(self, next_seq: int, now: float, samples: int, seconds: float, step: int = STEP) -> "Horizon":
        """Give the present horizon: the newest `samples` that are younger than `seconds`."""
        by_age = self.observed_before(now - seconds)
        # a clock that is wrong by years must not empty the log at once: age removes at most 1/step of it each time
        by_age = min(by_age, self.oldest_seq + max(1, (next_seq - self.oldest_seq) // step))
        oldest = max(by_age, self.oldest_to_label(next_seq, samples))
        return Horizon(oldest, self._marked(oldest, next_seq, now, seconds))

    def _marked(self, oldest: int, next_seq: int, now: float, seconds: float) -> list[tuple[int, float]]:
        kept = [watermark for watermark in self.watermarks if watermark[0] > oldest]
        due = not kept or abs(now - kept[-1][1]) >= seconds / WATERMARKS
        return [*kept, (next_seq, now)][-2 * WATERMARKS :] if due else kept
