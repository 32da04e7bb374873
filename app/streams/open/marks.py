"""What stays visible on a stream until somebody accepts it, or until it begins anew."""

from collections.abc import Sequence

import msgspec


class Mismatches(msgspec.Struct):
    """Samples that a replay of the log scored otherwise: logged by another version or not; which, and since when."""

    version: int = 0
    other: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    since: float | None = None

    def __bool__(self) -> bool:
        return self.version + self.other > 0

    def add(self, reason: str, seqs: Sequence[int], now: float) -> None:
        """Count samples in."""
        setattr(self, reason, getattr(self, reason) + len(seqs))
        self.first_seq = min(seqs[0], self.first_seq or seqs[0])
        self.last_seq = max(seqs[-1], self.last_seq or seqs[-1])
        self.since = now if self.since is None else self.since


class Rebuilt(msgspec.Struct):
    """A state that was rebuilt since the snapshot was lost: when and why, and which samples are lost, if any are."""

    at: float
    reason: str
    lost_first_seq: int | None = None
    lost_last_seq: int | None = None
