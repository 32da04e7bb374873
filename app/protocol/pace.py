"""Whether a transfer is fast enough."""


class Pace:
    """Checks from time to time that each span of so many seconds moves enough bytes."""

    __slots__ = ("_amount", "_least", "_seconds", "_since", "_what")

    def __init__(self, seconds: float, bytes_per_second: float) -> None:
        self._seconds, self._least = seconds, seconds * bytes_per_second
        self._what: object = None
        self._since, self._amount = 0.0, 0

    def is_slow(self, what: object, amount: int, now: float) -> bool:
        """Tell whether a span has ended in which the amount grew too little; a new transfer starts a new span."""
        if what is not self._what:
            self._what, self._since, self._amount = what, now, amount
        if now - self._since < self._seconds:
            return False
        grown = amount - self._amount
        self._since, self._amount = now, amount
        return grown < self._least

    def rest(self) -> None:
        """Start a new span at the next check."""
        self._what = None
