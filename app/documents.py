"""Documents of one kind by name: few, kept in the store, cached by each worker."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Generic, TypeVar

import msgspec

from app.storage import DocumentKind, Store, StoreCorrupt, StoreUnavailable
from app.streams.errors import more_than
from app.streams.open.clock import Clock

FRESH_SECONDS = 5.0
"""So long after a change another worker may still use the document as it was."""
TRIES = 5
"""How often a change is tried while others change the same document."""
NO_PRESETS: Mapping[str, bytes] = {}

logger = logging.getLogger(__name__)

T = TypeVar("T")


class UnknownDocument(LookupError):
    """No such document of a kind."""

    kind: ClassVar[DocumentKind]

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no {self.kind} {name!r}")
        self.field, self.value, self.limit = str(self.kind), name, f"a {self.kind} that exists"


class Documents(Generic[T]):
    """Keeps the documents of a kind. `made` reads a body; a preset is there as long as none of its name is kept."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        most: int,
        unknown: type[UnknownDocument],
        made: Callable[[bytes], T],
        presets: Mapping[str, bytes] = NO_PRESETS,
    ) -> None:
        self._store, self._clock, self._most, self._unknown = store, clock, most, unknown
        self._make, self._presets = made, presets
        self._made: dict[str, tuple[bytes, T]] = {}
        self._unreadable: dict[str, bytes] = {}
        self._readable: Mapping[str, T] = {}
        self._bodies: Mapping[str, bytes] = {}
        self._read_bodies: Mapping[str, bytes] | None = None
        self._fresh_until = 0.0
        self._n_changes = 0

    async def find(self, name: str) -> T:
        """Give a document, perhaps as it was FRESH_SECONDS ago. Raises UnknownDocument."""
        return self._read(name, (await self._cached()).get(name))

    async def all(self) -> dict[str, T]:
        """Give all documents in order of their names, perhaps as they were FRESH_SECONDS ago."""
        return {name: self._read(name, body) for name, body in sorted((await self._cached()).items())}

    async def readable(self) -> Mapping[str, T]:
        """Give all documents as `all` does, but those that cannot be read: the log names each of them once.

        It is the same object again as long as nothing has changed.
        """
        bodies = await self._cached()
        if bodies is not self._read_bodies:
            self._readable, self._read_bodies = self._readable_of(bodies), bodies
        return self._readable

    async def newest(self, name: str) -> T:
        """Give a document as it is now. Raises UnknownDocument."""
        kept = await self._store.document(self._unknown.kind, name)
        return self._read(name, self._presets.get(name) if kept is None else kept)

    async def is_kept(self, name: str) -> bool:
        """Tell whether a document is kept, and so is no preset."""
        return await self._store.document(self._unknown.kind, name) is not None

    async def names(self) -> list[str]:
        """List all documents in order, presets too."""
        return sorted({*self._presets, *await self._store.documents(self._unknown.kind)})

    async def put(
        self,
        name: str,
        body: bytes,
        check: Callable[[T], None] | None = None,
        spare: Callable[[Mapping[str, T]], Sequence[str]] = lambda _: (),
    ) -> bool:
        """Keep a document; tell whether it is new. Raises TooMany, or StoreUnavailable if others always come first.

        `check` raises for a document that may not be replaced: it sees the very one that is. For a new one the first of
        those go that are `spare`, if there is no room, but only once it is kept.
        """
        kind = self._unknown.kind
        with self._changing():
            for _ in range(TRIES):
                present = await self._store.documents(kind)
                expected = present.get(name)
                if check is not None and expected is not None:
                    check(self._read(name, expected))
                going = () if name in present else self._going(present, spare)
                if await self._store.put_document(kind, name, body, expected):
                    for other in going:
                        await self._store.delete_document(kind, other, present[other])
                    return expected is None
        raise self._contended(name)

    async def delete(self, name: str, check: Callable[[T], None] | None = None) -> None:
        """Delete a document; a preset of its name is there again. Raises as `put` does, and UnknownDocument."""
        kind = self._unknown.kind
        with self._changing():
            for _ in range(TRIES):
                present = await self._store.document(kind, name)
                if present is None:
                    raise self._unknown(name)
                if check is not None:
                    check(self._read(name, present))
                if await self._store.delete_document(kind, name, present):
                    return
        raise self._contended(name)

    def _going(self, present: Mapping[str, bytes], spare: Callable[[Mapping[str, T]], Sequence[str]]) -> Sequence[str]:
        """Name those that go for a new one. Raises TooMany."""
        excess = len(present) + 1 - self._most
        if excess <= 0:
            return ()
        going = spare(self._readable_of(present))[:excess]
        if len(going) < excess:
            kind = self._unknown.kind
            raise more_than(self._most, f"{kind}s", f"ITAN_MAX_{kind.upper()}S")
        return going

    def _contended(self, name: str) -> StoreUnavailable:
        return StoreUnavailable(f"the {self._unknown.kind} {name!r} was changed by others {TRIES} times meanwhile")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Read all again after a change, also if it is not known whether it came about."""
        try:
            yield
        finally:
            self._fresh_until, self._n_changes = 0.0, self._n_changes + 1

    async def _cached(self) -> Mapping[str, bytes]:
        now, n_changes = self._clock.monotonic(), self._n_changes
        if self._fresh_until <= now:
            kept = await self._store.documents(self._unknown.kind)
            bodies = {**self._presets, **kept}
            if n_changes != self._n_changes:
                return bodies  # perhaps as they were before the change
            if bodies != self._bodies:
                self._bodies = bodies
            self._fresh_until = now + FRESH_SECONDS
            self._made = {name: made for name, made in self._made.items() if name in self._bodies}
        return self._bodies

    def _readable_of(self, bodies: Mapping[str, bytes]) -> dict[str, T]:
        """Read those that can be read; the log names each of the others once."""
        found, unreadable = {}, {}
        for name, body in sorted(bodies.items()):
            try:
                found[name] = self._read(name, body)
            except StoreCorrupt as error:
                unreadable[name] = body
                if self._unreadable.get(name) != body:
                    logger.error("%s", error)
        self._unreadable = unreadable
        return found

    def _read(self, name: str, body: bytes | None) -> T:
        """Read a body, unless it is the one that was read last."""
        if body is None:
            raise self._unknown(name)
        known = self._made.get(name)
        if known is None or known[0] != body:
            try:
                known = body, self._make(body)
            except msgspec.DecodeError as error:
                raise StoreCorrupt(None, f"{self._unknown.kind} {name!r} cannot be read: {error}") from error
            self._made[name] = known
        return known[1]
