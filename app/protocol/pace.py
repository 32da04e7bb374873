"""Whether something goes on fast enough."""


class Pace:
    """Looked at now and then: over each span of so many seconds there must be at least so much."""

    __slots__ = ("_amount", "_least", "_seconds", "_since", "_what")

    def __init__(self, seconds: float, bytes_per_second: float) -> None:
        self._seconds, self._least = seconds, seconds * bytes_per_second
        self._what: object = None
        self._since, self._amount = 0.0, 0

    def is_slow(self, what: object, amount: int, now: float) -> bool:
        """Tell whether a span has ended in which the amount grew too little; another thing begins a span of its own."""
        if what is not self._what:
            self._what, self._since, self._amount = what, now, amount
        if now - self._since < self._seconds:
            return False
        grown = amount - self._amount
        self._since, self._amount = now, amount
        return grown < self._least

    def rest(self) -> None:
        """Begin anew when looked at again."""
        self._what = None
