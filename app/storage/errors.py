"""What a store raises on purpose."""

from enum import StrEnum

from app.storage.bounds import Bound
from app.storage.log import Position


class StoreError(Exception):
    """Base of the store's errors."""


class Cause(StrEnum):
    """Why a store cannot be used now."""

    UNREACHABLE = "unreachable"  # no answer
    FULL = "full"  # no room left: of a disk, or of Redis' memory
    READ_ONLY = "read_only"
    LOCKED = "locked"  # another process has it
    FAILED = "failed"  # the disk refuses
    REPLACED = "replaced"  # its files are not those that were opened: an operator must act


class StoreUnavailable(StoreError):
    """The store cannot be used now. Nothing is known to have changed, and trying again may work."""

    def __init__(self, reason: str, cause: Cause = Cause.UNREACHABLE) -> None:
        super().__init__(reason)
        self.reason, self.cause = reason, cause


class ArchiveUnavailable(StoreUnavailable):
    """The archive cannot be used now. Nothing in the store has changed, and trying again may work."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the archive: {reason}")


class StaleWriter(StoreError):
    """The stream has moved on: the writer's copy is not the newest one."""

    def __init__(self, stream: str, expected: Position, actual: Position) -> None:
        super().__init__(f"stream {stream!r}: the writer is at {expected}, the store at {actual}")
        self.stream, self.expected, self.actual = stream, expected, actual


class Fenced(StoreError):
    """Another writer has taken the stream over since this one got its token."""

    def __init__(self, stream: str, token: int, newest: int) -> None:
        super().__init__(f"stream {stream!r} was taken over by another writer: its token is {newest}, not {token}")
        self.stream, self.token, self.newest = stream, token, newest


class LeaseHeld(StoreError):
    """Another writer holds the stream's lease, which ends in `seconds` unless renewed.

    It will not hand the stream over for `kept_seconds`.
    """

    def __init__(self, stream: str, seconds: float, owner: str = "", kept_seconds: float = 0.0) -> None:
        super().__init__(
            f"stream {stream!r} is held by another worker, whose lease ends in {seconds:.1f} s if not renewed"
        )
        self.stream, self.seconds, self.owner, self.kept_seconds = stream, seconds, owner, kept_seconds


class StreamNotFound(StoreError):
    """There is no such stream."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream!r} does not exist")
        self.stream = stream


class StoreCorrupt(StoreError):
    """A part of what was stored is gone or damaged; `gap` says which."""

    def __init__(self, stream: str | None, gap: str) -> None:
        super().__init__(gap if stream is None else f"stream {stream!r}: {gap}")
        self.stream, self.gap = stream, gap


class TooManyStreams(Exception):
    """No more streams may be created; nothing was changed."""

    def __init__(self, stream: str, bound: Bound, count: int) -> None:
        super().__init__(f"stream {stream!r} cannot be created: there are {count} streams, but {bound.text}")
        self.bound, self.count = bound, count
        self.limit_name, self.key = "max_streams" if bound.key is None else "streams", bound.key
