"""What the streams refuse; each error holds what a caller needs to say why."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Self

# a request can also fail with these errors of the store
from app.storage import ArchiveUnavailable as ArchiveUnavailable
from app.storage import Fenced as Fenced
from app.storage import LeaseHeld as LeaseHeld
from app.storage import StaleWriter as StaleWriter
from app.storage import StoreCorrupt as StoreCorrupt
from app.storage import StoreError as StoreError
from app.storage import StoreUnavailable as StoreUnavailable
from app.storage import StreamNotFound as StreamNotFound
from app.storage import TooManyStreams as TooManyStreams
from app.streams.faults import Fault, Faults

MOST_NAMED = 20


class Refused(ValueError):
    """A request in which a field's value breaks a limit; nothing was changed.

    If several rows are wrong, `faults` holds the first of them, `rows` the numbers of all, and n_faults says how many.
    """

    def __init__(self, field: str, value: object, limit: str) -> None:
        super().__init__(field, value, limit)
        self.field, self.value, self.limit = field, value, limit
        self.faults: Sequence[Fault] = (Fault(field, value, limit),)
        self.rows: Sequence[int] = ()
        self.n_faults = 1

    def __str__(self) -> str:
        first = str(self.faults[0])
        return first if self.n_faults == 1 else f"{first} (and {self.n_faults - 1} more: see errors)"

    @classmethod
    def of(cls, faults: Iterable[Fault], rows: Sequence[int]) -> Self:
        """Refuse a request for the faults of these rows; only the first MOST_NAMED are named."""
        named = tuple(islice(faults, MOST_NAMED))
        refused = cls(named[0].field, named[0].value, named[0].limit)
        refused.faults, refused.rows, refused.n_faults = named, rows, len(rows)
        return refused

    @classmethod
    def for_any(cls, faults: Faults) -> None:
        """Refuse a request if there are faults."""
        if len(faults):
            by_row = faults.by_row()
            raise cls.of(by_row.values(), list(by_row))


class InvalidStreamId(Refused):
    """A stream id that is too long, or has other characters."""


class InvalidSamples(Refused):
    """Samples that do not fit the stream: width, names, infinities, number."""


class InvalidTimestamps(Refused):
    """Timestamps that are too old, too far ahead or out of order."""


class InvalidIds(Refused):
    """Client ids that occur twice in one batch, or are not as many as the samples."""


class TooMany(Refused):
    """More samples or labels than one request may hold."""


def refuse_beyond(limit: int, count: int, field: str, setting: str = "") -> None:
    """Raise TooMany for more than a setting, if there is one, allows."""
    if count > limit:
        raise more_than(limit, field, setting)


def more_than(limit: int, field: str, setting: str) -> TooMany:
    """Give the error for a request that holds too many of something; they need not have been counted."""
    by = f" ({setting})" if setting else ""
    return TooMany(field, f"more than {limit} {field}", f"at most {limit} {field}{by} in one request")


class IdConflict(Refused):
    """An id that was given to a sample of other values."""

    LIMIT = "a new id, or a known one with its first values"


class UnknownStream(LookupError):
    """No such stream."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"there is no stream {stream!r}")
        self.field, self.value, self.limit = "stream", stream, "a stream that exists"


class NotSilent(ValueError):
    """A stream that was to be deleted only if silent has had a write."""

    def __init__(self, seconds: float, needed: float) -> None:
        super().__init__(f"the stream has been silent for only {seconds:.0f} s")
        self.field, self.value, self.limit = "silent_seconds", int(seconds), f"at least {needed:.0f}"


class UnknownSample(LookupError):
    """No such sample in a stream's log: not observed yet, or trimmed."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"the log holds no sample {seq}")
        self.field, self.value, self.limit = "seq", seq, "a sample that the log still holds"


class UnknownIncident(LookupError):
    """No such incident: there was none, or its stream was deleted, or has had many since."""

    def __init__(self, incident: str) -> None:
        super().__init__(f"there is no incident {incident!r}")
        self.field, self.value, self.limit = "incident", incident, "the id of an incident that GET /incidents lists"


class StreamExists(ValueError):
    """A stream of that name has another config."""

    def __init__(self, stream: str, differing: str) -> None:
        super().__init__(f"stream {stream!r} exists with another {differing}")
        self.field, self.value, self.limit = (
            "stream",
            stream,
            f"a new stream, or the same config (differs: {differing})",
        )


class StreamAppeared(Exception):
    """Another writer created the stream in the meantime: trying again finds it."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream!r} has just been created by another writer")


class RepairLoses(Exception):
    """A repair would lose something, and was not allowed to."""

    def __init__(self, stream: str, what: str) -> None:
        super().__init__(f"a repair of stream {stream!r} loses {what}; lossy=true allows that")
        self.stream = stream


class ReplayMismatch(Exception):
    """A replayed sample got another score or threshold than the logged one, and replays must be exact."""

    def __init__(self, stream: str, what: str) -> None:
        super().__init__(f"stream {stream!r}: {what}; with ITAN_STRICT_REPLAY=false the stream is served anyway")
        self.stream = stream


class TooManyWatchers(Exception):
    """Too many clients are watching."""

    limit_name = "max_watchers"

    def __init__(self, most: int, by: str = "ITAN_MAX_WATCHERS", key: str | None = None) -> None:
        self.most, self.key = most, key
        self.limit = f"fewer than {most} watchers ({by})"
        super().__init__(f"{most} clients are watching already, which is the limit ({by})")


class TooManyWatchersOfKey(TooManyWatchers):
    """As many watch already with this key as may."""

    limit_name = "watchers"


class Stopping(Exception):
    """The service shuts down and takes no new work."""
