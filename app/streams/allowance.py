"""How much of the service a request may use."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from app.storage import NO_BOUNDS, Bound


async def free(_: int) -> None:
    """Let any number of samples or bytes pass."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the key of a request allows: streams, samples and bytes to keep, each told before the work begins."""

    bounds: Sequence[Bound] = NO_BOUNDS
    pay: Callable[[int], Awaitable[None]] = free
    keep: Callable[[int], Awaitable[None]] = free

    @property
    def creates(self) -> bool:
        """Tell whether it lets a stream be created at all."""
        return all(bound.most for bound in self.bounds)


UNLIMITED = Allowance()
