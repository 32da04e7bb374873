"""What a request may use of the service."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from app.storage import NO_BOUNDS, Bound


async def free(_: int) -> None:
    """Let any number of samples or bytes pass."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the key of a request allows: streams, samples, bytes to store; all are asked for before the work begins."""

    bounds: Sequence[Bound] = NO_BOUNDS
    pay: Callable[[int], Awaitable[None]] = free
    keep: Callable[[int], Awaitable[None]] = free

    @property
    def creates(self) -> bool:
        """Tell whether a stream may be created."""
        return all(bound.most for bound in self.bounds)


UNLIMITED = Allowance()
