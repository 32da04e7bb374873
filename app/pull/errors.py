"""What can end or delay a pull."""


class Permanent(Exception):
    """It will not go better the next time: somebody must change something."""


class Temporary(Exception):
    """It may go better later; after `retry_after_seconds` if the other side said so."""

    def __init__(self, message: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TooMuch(Exception):
    """Prometheus cannot answer for so many steps at once."""


class Unanswerable(Exception):
    """Prometheus cannot evaluate the query at some step, such as when it matches two series."""


class Stopped(Exception):
    """Somebody asked the pull to end."""


class Unfit(Exception):
    """A stream cannot take the samples."""
