"""Lets the verbs of a store note which writes it refuses."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from app.storage.base import StoreUnavailable
from app.storage.room import RefusedWrites

P = ParamSpec("P")
T = TypeVar("T")


class Refusing(Protocol):
    """A store that remembers."""

    refused: RefusedWrites


S = TypeVar("S", bound=Refusing)
Verb = Callable[Concatenate[S, P], Awaitable[T]]
Noted = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def adds(verb: Verb[S, P, T]) -> Noted[S, P, T]:
    """Note when a verb that needs more room is refused, and when it is not."""

    @wraps(verb)
    async def noted(self: S, /, *given: P.args, **more: P.kwargs) -> T:
        try:
            outcome = await verb(self, *given, **more)
        except StoreUnavailable as error:
            self.refused.note(error.cause, error.reason)
            raise
        self.refused.note_kept()
        return outcome

    return noted


def replaces(verb: Verb[S, P, T]) -> Noted[S, P, T]:
    """Note when a verb is refused that may pass in a full store: it makes room first."""

    @wraps(verb)
    async def noted(self: S, /, *given: P.args, **more: P.kwargs) -> T:
        try:
            return await verb(self, *given, **more)
        except StoreUnavailable as error:
            self.refused.note(error.cause, error.reason)
            raise

    return noted
