"""Where a stream is not what its log says, shown until an operator accepts it or the stream begins anew."""

from collections.abc import Sequence

import msgspec


class Mismatches(msgspec.Struct):
    """Samples that a replay scored otherwise than the log says: how many, by the build that logged them; since when."""

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
    """A state that was rebuilt because the snapshot was lost: when, why, and which samples are lost, if any."""

    at: float
    reason: str
    lost_first_seq: int | None = None
    lost_last_seq: int | None = None
