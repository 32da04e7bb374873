"""When each label is revealed, and how far a batch may reach before the next one is."""

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Revealed:
    """A label on its way: `position` counts the replayed samples from 1, `seq` is what the stream calls the sample."""

    position: int
    anomaly: bool
    seq: int = 0


class LabelQueue:
    """Labels wait until `delay` samples have followed theirs, then go out `group` at a time.

    With a group of one the label of sample t goes out after sample t + delay and before t + delay + 1: what a replay
    does to a stream then depends on the delay alone, not on how its samples are cut into batches. A larger group waits
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
        """Put a label in; positions must rise."""
        self._waiting.append(label)

    def due(self, n_posted: int) -> list[Revealed]:
        """Take out the full groups that are due once so many samples have been posted."""
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
        """Say after how many samples the next group goes out, as far as its labels are known."""
        if len(self._waiting) < self._group:
            return None
        return self._waiting[self._group - 1].position + self._delay
