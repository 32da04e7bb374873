"""What core refuses, each error with the data that a caller needs to say why."""


class ItanError(ValueError):
    """Base of every error that core raises on purpose."""


class InvalidConfig(ItanError):
    """A field of a DetectorConfig is unknown, ill-typed or out of range."""

    def __init__(self, field: str, value: object, limit: str) -> None:
        super().__init__(f"{field} is {shown(value)}, but must be {limit}")
        self.field, self.value, self.limit = field, value, limit


class InvalidObservation(ItanError):
    """A matrix of samples cannot be scored; row and column say where, if it is one place."""

    def __init__(
        self, field: str, value: object, limit: str, *, row: int | None = None, column: int | None = None
    ) -> None:
        where = "".join(f"[{k}]" for k in (row, column) if k is not None)
        super().__init__(f"{field}{where} is {shown(value)}, but must be {limit}")
        self.field, self.value, self.limit, self.row, self.column = field, value, limit, row, column


class InvalidSnapshot(ItanError):
    """Bytes are not a snapshot of this kind and version, or are damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not a usable snapshot: {reason}")
        self.reason = reason


class InvalidState(ItanError):
    """A detector's state could not be read back; to_bytes raises it in place of writing what is of no use."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the state could not be read back: {reason}")
        self.reason = reason


class NotReady(ItanError):
    """A score was asked for before the warm-up has fixed the scaling."""

    def __init__(self, samples_needed: int) -> None:
        super().__init__(f"{samples_needed} more samples are needed before scores exist")
        self.samples_needed = samples_needed


def shown(value: object, width: int = 80) -> str:
    """A value as it stands in an error message, cut to a readable width."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length()} bits"  # Python refuses to print thousands of digits
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # such a number inside of a list, or lists without end
        text = f"a {type(value).__name__}"
    return text if len(text) <= width else text[: width - 3] + "..."
