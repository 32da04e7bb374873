"""Which samples can still be labelled, and how far the log may be trimmed."""

from dataclasses import dataclass, field

MARKS = 256
STEP, SILENT_STEP = 10, 2


@dataclass(slots=True)
class Horizon:
    """The oldest sample that the log keeps, and marks (seq, time) that tell how old samples are.

    A mark says: every sample below this seq had been observed by that time.
    """

    oldest_seq: int
    marks: list[tuple[int, float]] = field(default_factory=list)

    def oldest_to_label(self, next_seq: int, samples: int) -> int:
        """Give the oldest sample that can be labelled, whether or not the log has been trimmed to it yet."""
        return max(self.oldest_seq, next_seq - samples)

    def with_last(self, next_seq: int, at: float) -> "Horizon":
        """Give the horizon with a mark behind all samples, of which the last was observed at that time."""
        earlier = [mark for mark in self.marks if mark[0] < next_seq and mark[1] <= at]
        return Horizon(self.oldest_seq, [*earlier, (next_seq, at)][-2 * MARKS :])

    def advanced(self, next_seq: int, now: float, samples: int, seconds: float, step: int = STEP) -> "Horizon":
        """Give the horizon as it is now: the newest `samples` that are younger than `seconds`."""
        by_age = max((seq for seq, at in self.marks if at <= now - seconds), default=0)
        # a clock that is wrong by years must not empty the log at once: age takes at most this part of it each time
        by_age = min(by_age, self.oldest_seq + max(1, (next_seq - self.oldest_seq) // step))
        oldest = max(by_age, self.oldest_to_label(next_seq, samples))
        return Horizon(oldest, self._marked(oldest, next_seq, now, seconds))

    def _marked(self, oldest: int, next_seq: int, now: float, seconds: float) -> list[tuple[int, float]]:
        kept = [mark for mark in self.marks if mark[0] > oldest]
        due = not kept or abs(now - kept[-1][1]) >= seconds / MARKS
        return [*kept, (next_seq, now)][-2 * MARKS :] if due else kept
