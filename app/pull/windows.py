"""How many steps to ask for at once."""

from typing import Final

from app.pull.prometheus import MOST_POINTS

MOST_VALUES: Final = 100_000
"""A window asks for so many values at most, all queries and streams together."""


class Windows:
    """The steps of the next window: half as many after a failure, then more again.

    What was too much is approached slowly. After a step that cannot be evaluated, and had to be found, windows double.
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._most, self._next = MOST_POINTS, MOST_POINTS
        self._n_streams = 1

    @property
    def n_steps(self) -> int:
        """The most steps of the next window."""
        return max(1, min(MOST_VALUES // (self._n_streams * self._n_features), self._next))

    def note_streams(self, n_streams: int) -> None:
        """Note how many streams had values."""
        self._n_streams = max(1, n_streams)

    def note_too_much(self, n_steps: int) -> None:
        """Note steps that were too many at once."""
        self._most = self._next = max(1, n_steps // 2)

    def note_unanswerable(self, n_steps: int) -> None:
        """Note steps of which one cannot be evaluated."""
        self._next = max(1, n_steps // 2)

    def note_done(self) -> None:
        """Note that a window is done."""
        self._most = min(self._most + max(1, self._most // 8), MOST_POINTS)
        self._next = min(2 * self._next, self._most)
