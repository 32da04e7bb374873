"""What sources refuse."""

from app.streams.errors import Refused


class InvalidMessage(Refused):
    """A body that is no message of the format of its source."""


class InvalidRecord(Refused):
    """A record that is not as its source says."""
