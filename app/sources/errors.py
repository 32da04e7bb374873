"""What sources refuse."""

from app.streams.errors import Refused


class InvalidRecord(Refused):
    """A record that is not as its source says."""
