"""Which replayed samples were already found to differ from the log."""

from app.storage.base import START, Position


class Mismatches:
    """Tells what is new: a stream that is refused, or read from a copy, is opened again and again by the same log."""

    def __init__(self) -> None:
        self._newest: dict[str, Position] = {}

    def note(self, stream: str, position: Position) -> bool:
        """Note that an entry's samples differ; False if that was known."""
        if position <= self._newest.get(stream, START):
            return False
        self._newest[stream] = position
        return True

    def forget(self, stream: str) -> None:
        """Forget a stream whose log begins anew."""
        self._newest.pop(stream, None)
