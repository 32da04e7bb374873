"""What the streams refuse, each error with the data that a caller needs to say why."""

import reprlib

SHOWN_CHARACTERS = 80

# a refused value may be megabytes long: only its beginning is written out
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxdict, _REPR.maxlist, _REPR.maxstring = 3, 4, 8, SHOWN_CHARACTERS


def shown(value: object) -> str:
    """Write a value as it stands in an error message, cut to a readable length."""
    text = _REPR.repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


class Refused(ValueError):
    """A request that names a field with a value beyond a limit; nothing was changed."""

    def __init__(self, field: str, value: object, limit: str) -> None:
        super().__init__(f"{field} is {shown(value)}, but must be {limit}")
        self.field, self.value, self.limit = field, value, limit


class InvalidStreamId(Refused):
    """A stream id of other characters, or too long."""


class InvalidSamples(Refused):
    """Samples that do not fit the stream: width, names, infinities, number."""


class InvalidTimestamps(Refused):
    """Timestamps that no clock should show."""


class InvalidIds(Refused):
    """Client ids that are doubled in one batch, or of another number than the samples."""


class TooMany(Refused):
    """More samples or labels than one request may hold."""


def refuse_beyond(limit: int, count: int, field: str, setting: str) -> None:
    """Raise TooMany for more than the setting allows."""
    if count > limit:
        raise TooMany(field, f"{count} {field}", f"at most {limit} {field} ({setting}) in one request")


class IdConflict(Refused):
    """An id that was given to a sample of other values."""

    def __init__(self, field: str, client_id: str) -> None:
        super().__init__(field, client_id, "an id not yet given, or one sent again with the values it came with first")


class UnknownStream(LookupError):
    """No such stream."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"there is no stream {stream!r}")
        self.field, self.value, self.limit = "stream", stream, "a stream that exists"


class UnknownSample(LookupError):
    """No such sample in a stream's log: not observed yet, or trimmed."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"the log holds no sample {seq}")
        self.field, self.value, self.limit = "seq", seq, "a sample that the log still holds"


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
        super().__init__(f"stream {stream!r} was just created by another writer")


class ReplayMismatch(Exception):
    """A replayed sample got another score or threshold than was logged for it, and the operator wants none of that."""

    def __init__(self, stream: str, what: str) -> None:
        super().__init__(f"stream {stream!r}: {what}; ITAN_STRICT_REPLAY=false lets it go on")
        self.stream = stream


class TooManyWatchers(Exception):
    """As many watch already as may."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} watch already, which is the most (ITAN_MAX_WATCHERS)")


class Stopping(Exception):
    """The service shuts down and takes no new work."""
