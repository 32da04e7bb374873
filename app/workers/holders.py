"""Which other workers hold streams, as far as this one has heard."""

from typing import NamedTuple

from app.streams.open.clock import Clock


class Holder(NamedTuple):
    """The address of a worker that holds a stream, and when to ask the store again."""

    address: str
    until: float


class Holders:
    """The holders of streams that this worker has lately been refused; each is asked for again after `seconds`."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._known: dict[str, Holder] = {}
        self._forget_at = 0.0

    def address(self, stream: str) -> str:
        """Give the address of a stream's holder; empty if it is not known."""
        holder = self._known.get(stream)
        return holder.address if holder is not None and holder.until > self._clock.monotonic() else ""

    def note(self, stream: str, address: str) -> None:
        """Note that a stream is held at an address."""
        now = self._clock.monotonic()
        if now >= self._forget_at:
            self._known = {name: holder for name, holder in self._known.items() if holder.until > now}
            self._forget_at = now + self._seconds
        self._known[stream] = Holder(address, now + self._seconds)

    def forget(self, stream: str) -> None:
        """Forget a holder that holds the stream no more, or does not answer."""
        self._known.pop(stream, None)
