"""The streams with changes that no snapshot holds yet."""

from itertools import islice, takewhile


class Unsaved:
    """Keeps since when a stream has such changes, they would take long to replay, and a snapshot of them is due.

    All lists are in order of time, so nobody has to look through thousands of streams.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._long_since: dict[str, float] = {}
        self._due_since: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def note(self, stream: str, now: float, *, is_long: bool) -> None:
        """Note that a stream has changed, and whether a replay of its unsaved changes would take long."""
        self._since.setdefault(stream, now)
        if is_long:
            self._long_since.setdefault(stream, now)

    def note_due(self, stream: str, now: float) -> None:
        """Note that a snapshot of a stream is due."""
        self._due_since.setdefault(stream, now)

    def forget(self, stream: str) -> None:
        """Note that a snapshot holds all changes of a stream, or that they are another worker's to store."""
        self._since.pop(stream, None)
        self._long_since.pop(stream, None)
        self._due_since.pop(stream, None)

    def since(self, stream: str) -> float | None:
        """Give the time of a stream's oldest unsaved change."""
        return self._since.get(stream)

    def oldest(self) -> float | None:
        """Give the time of the oldest unsaved change of all streams."""
        return next(iter(self._since.values()), None)

    def candidates(self, before: float) -> list[str]:
        """Give the streams whose unsaved changes take long to replay, or are as old as this time."""
        old = takewhile(lambda stream: self._since[stream] <= before, self._since)
        return list(dict.fromkeys([*self._long_since, *old]))

    def due_since(self, max_age: float) -> float | None:
        """Give the time at which the first snapshot became due if no change may wait longer than max_age."""
        times = [*islice(self._due_since.values(), 1), *(time + max_age for time in islice(self._since.values(), 1))]
        return min(times, default=None)
