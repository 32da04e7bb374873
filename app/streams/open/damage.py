"""What this worker knows of streams that are damaged, or that did not replay to the scores in their logs."""

import math
from typing import NamedTuple

from app.storage import START, Position

PAUSE_SECONDS = 30.0


class Damage(NamedTuple):
    """What is wrong with a stream, what was seen of it, and when it may be tried again to rebuild it."""

    reason: str
    seen: object
    rest_until: float


class Troubles:
    """The troubles by stream, from when they are found until the stream is found well again, or is gone."""

    def __init__(self) -> None:
        self._newest: dict[str, Position] = {}
        self.damaged: dict[str, Damage] = {}
        self.mismatched: set[str] = set()

    def is_new(self, stream: str, position: Position) -> bool:
        """Note that an entry's samples differ; False if that was known: a stream may be opened again and again."""
        if position <= self._newest.get(stream, START):
            return False
        self._newest[stream] = position
        return True

    def note_damage(self, stream: str, reason: str, seen: object) -> None:
        """Note that something of a stream cannot be read."""
        self.damaged[stream] = Damage(reason, seen, -math.inf)

    def note_vain(self, stream: str, reason: str, seen: object, now: float) -> None:
        """Note that a stream could not be rebuilt."""
        self.damaged[stream] = Damage(reason, seen, now + PAUSE_SECONDS)

    def is_resting(self, stream: str, now: float) -> bool:
        """Tell whether it was tried just now, in vain, to rebuild a stream."""
        return stream in self.damaged and now < self.damaged[stream].rest_until

    def note_well(self, stream: str, *, is_mismatched: bool) -> None:
        """Note that a stream can be read."""
        self.damaged.pop(stream, None)
        if is_mismatched:
            self.mismatched.add(stream)
        else:
            self.mismatched.discard(stream)

    def forget(self, stream: str) -> None:
        """Forget a stream that is gone, or whose log begins anew."""
        self._newest.pop(stream, None)
        self.note_well(stream, is_mismatched=False)
