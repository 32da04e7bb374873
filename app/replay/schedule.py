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
    """Labels wait until `delay` samples have followed their own, and then for the next of the times of sending.

    Those come after every so many samples. With `every` = 1 the label of sample t is sent after sample t + delay and
    before t + delay + 1; else up to `every` - 1 samples later. What a replay does to a stream depends only on this, not
    on how its samples are cut into batches.

    >>> queue = LabelQueue(delay=2, every=5)
    >>> queue.add(Revealed(1, True))
    >>> queue.due(4), queue.next_stop()
    ([], 5)
    """

    def __init__(self, delay: int, every: int = 1) -> None:
        self._delay = delay
        self._every = every
        self._waiting: deque[Revealed] = deque()

    def add(self, label: Revealed) -> None:
        """Add a label; positions must rise."""
        self._waiting.append(label)

    def due(self, n_posted: int) -> list[Revealed]:
        """Take out the labels that are due after this many posted samples."""
        out: list[Revealed] = []
        while (stop := self.next_stop()) is not None and stop <= n_posted:
            out.append(self._waiting.popleft())
        return out

    def rest(self) -> list[Revealed]:
        """Take out all that is left."""
        rest = list(self._waiting)
        self._waiting.clear()
        return rest

    def next_stop(self) -> int | None:
        """Say after how many samples labels are sent next, as far as they are known."""
        if not self._waiting:
            return None
        due = self._waiting[0].position + self._delay
        return due + -due % self._every
