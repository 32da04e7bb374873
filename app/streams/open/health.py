"""Which streams this worker knows to be damaged, or to replay to other scores than their logs say."""

import math
from typing import NamedTuple

from app.storage import START, Position

REBUILD_PAUSE_SECONDS = 30.0


class Damage(NamedTuple):
    """What is wrong with a stream, the store's fingerprint of it, and when a rebuild may be tried again."""

    reason: str
    fingerprint: object
    retry_at: float


class StreamHealth:
    """Damaged and mismatched streams, until they are found readable again or are deleted."""

    def __init__(self) -> None:
        self._newest_mismatch: dict[str, Position] = {}
        self.damaged: dict[str, Damage] = {}
        self.mismatched: set[str] = set()

    def is_new_mismatch(self, stream: str, position: Position) -> bool:
        """Note a mismatch at an entry; False if it was known: a stream may be opened again and again."""
        if position <= self._newest_mismatch.get(stream, START):
            return False
        self._newest_mismatch[stream] = position
        return True

    def mark_damaged(self, stream: str, reason: str, fingerprint: object) -> None:
        """Note that something of a stream cannot be read."""
        self.damaged[stream] = Damage(reason, fingerprint, -math.inf)

    def mark_rebuild_failed(self, stream: str, reason: str, fingerprint: object, now: float) -> None:
        """Note that a stream could not be rebuilt."""
        self.damaged[stream] = Damage(reason, fingerprint, now + REBUILD_PAUSE_SECONDS)

    def is_waiting(self, stream: str, now: float) -> bool:
        """Tell whether a rebuild failed a moment ago."""
        return stream in self.damaged and now < self.damaged[stream].retry_at

    def mark_readable(self, stream: str, *, is_mismatched: bool) -> None:
        """Note that a stream can be read."""
        self.damaged.pop(stream, None)
        if is_mismatched:
            self.mismatched.add(stream)
        else:
            self.mismatched.discard(stream)

    def forget(self, stream: str) -> None:
        """Forget a stream that was deleted, or whose log begins anew."""
        self._newest_mismatch.pop(stream, None)
        self.mark_readable(stream, is_mismatched=False)
