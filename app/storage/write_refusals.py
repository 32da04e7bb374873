"""Remembers which writes a store refused, so that readiness and metrics can tell."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import wraps
from time import monotonic
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from app.storage.errors import StoreUnavailable

# Only the next write can show that the store still refuses, so a refusal counts for this long.
RECENT_SECONDS: Final = 300.0


class WriteRefusals:
    """Remembers the last refused write until a write succeeds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._last: tuple[float, str] | None = None
        self.on_refusal: Callable[[str], object] = lambda _: None

    def record(self, cause: str, reason: str) -> None:
        """Record a refused write."""
        self._last = self._clock(), reason
        self.on_refusal(cause)

    def clear(self) -> None:
        """Record that a write succeeded."""
        self._last = None

    def note(self, outcomes: Iterable[Exception | None]) -> None:
        """Record what became of several writes that need more space; None is success."""
        for error in outcomes:
            if error is None:
                self.clear()
            elif isinstance(error, StoreUnavailable):
                self.record(error.cause, error.reason)

    def recent(self) -> str | None:
        """Say why the last write was refused; None if it succeeded, or if that is long ago."""
        if self._last is None or (seconds := self._clock() - self._last[0]) > RECENT_SECONDS:
            return None
        return f"a write was refused {seconds:.0f} s ago, and none has succeeded since: {self._last[1]}"


P = ParamSpec("P")
T = TypeVar("T")


class Refusing(Protocol):
    """A store that remembers its refused writes."""

    write_refusals: WriteRefusals


S = TypeVar("S", bound=Refusing)
Write = Callable[Concatenate[S, P], Awaitable[T]]
RecordedWrite = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def records_refusals(write: Write[S, P, T]) -> RecordedWrite[S, P, T]:
    """Record when a write is refused. Its success proves little: it can free space before it needs any."""

    @wraps(write)
    async def recorded(self: S, /, *given: P.args, **more: P.kwargs) -> T:
        try:
            return await write(self, *given, **more)
        except StoreUnavailable as error:
            self.write_refusals.record(error.cause, error.reason)
            raise

    return recorded


def records_outcomes(write: Write[S, P, T]) -> RecordedWrite[S, P, T]:
    """Record when a write that needs more space is refused, and when it succeeds."""
    watched = records_refusals(write)

    @wraps(write)
    async def recorded(self: S, /, *given: P.args, **more: P.kwargs) -> T:
        outcome = await watched(self, *given, **more)
        self.write_refusals.clear()
        return outcome

    return recorded
