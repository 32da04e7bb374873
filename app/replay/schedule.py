"""When each label is sent, and how far a batch may go before the next label."""

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Revealed:
    """A waiting label: `position` counts the replayed samples from 1, `seq` is the sample's number in the stream."""

    position: int
    anomaly: bool
    seq: int = 0


class LabelQueue:
    """Labels wait until `delay` samples have followed their own, then are sent `group` at a time.

    With a group of one the label of sample t is sent after sample t + delay and before t + delay + 1. What a replay
    does to a stream then depends only on the delay, not on how its samples are cut into batches. A larger group waits
    for its last label.

    >>> queue = LabelQueue(delay=2)
    >>> queue.add(Revealed(1, True))
    >>> queue.due(2), queue.next_stop()
    ([], 3)
    """

    def __init__(self, delay: int, group: int = 1) -> None:
        self._delay = delay
        self._group = group
        self._waiting: deque[Revealed] = deque()

    def add(self, label: Revealed) -> None:
        """Add a label; positions must rise."""
        self._waiting.append(label)

    def due(self, n_posted: int) -> list[Revealed]:
        """Take out the full groups that are due after this many posted samples."""
        out: list[Revealed] = []
        while (stop := self.next_stop()) is not None and stop <= n_posted:
            out += (self._waiting.popleft() for _ in range(self._group))
        return out

    def rest(self) -> list[Revealed]:
        """Take out all that is left."""
        rest = list(self._waiting)
        self._waiting.clear()
        return rest

    def next_stop(self) -> int | None:
        """Say after how many samples the next group is due, as far as its labels are known."""
        if len(self._waiting) < self._group:
            return None
        return self._waiting[self._group - 1].position + self._delay
