"""What a timestamp says: epoch time in some unit, or ISO 8601 with a zone or without."""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from app.replay.reading.cells import BadTable, is_missing, number, quoted
from app.sources.source import UNITS, Unit
from app.streams.batches.timestamps import EARLIEST, LATEST


def is_time(text: str) -> bool:
    """Tell whether a text is a date in ISO 8601."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return not text.isdecimal()


def unit_between(low: float, high: float) -> Unit | None:
    """Give the one unit in which all numbers of a range are times from 1990 to 2100; then no other one can be.

    >>> unit_between(1_700_000_000, 1_800_000_000), unit_between(1_700_000_000_000, 1_700_000_000_500)
    ('s', 'ms')
    """
    return next((unit for unit, n in UNITS.items() if EARLIEST * n <= low and high <= LATEST * n), None)


@dataclass
class TimeReader:
    """Reads the cells of the column of the times as epoch seconds.

    Without a unit it takes the only one in which the first number is a time. Times without a zone are those of `zone`,
    or else UTC; in the hour that clocks repeat in autumn they go on after the time before.
    """

    column: str
    unit: Unit | None = None
    zone: str | None = None
    n_naive: int = 0
    guessed: bool = False

    def __post_init__(self) -> None:
        self._zone: tzinfo = ZoneInfo(self.zone or "UTC")
        self._newest = -float("inf")

    def restart(self) -> None:
        """Begin again at the first line."""
        self._newest = -float("inf")

    def read(self, line: int, cell: str) -> float:
        """Give epoch seconds. Raises BadTable."""
        if is_missing(cell):
            raise self._refusal(line, cell, "every line needs a time: complete it, or remove the line")
        try:
            value = number(cell)
        except ValueError:
            value = None
        seconds = self._of_text(line, cell) if value is None else self._of_number(line, cell, value)
        if not EARLIEST <= seconds <= LATEST:
            raise self._refusal(line, cell, f"no time from 1990 to 2100{f' in {self.unit}' if value else ''}")
        self._newest = seconds
        return seconds

    def read_if_given(self, line: int, cell: str) -> float | None:
        """Give epoch seconds; None if the time is not known. Raises BadTable."""
        return None if is_missing(cell) else self.read(line, cell)

    def notes(self) -> list[str]:
        """Say what was guessed."""
        notes = [f"the numbers of {self.column} are times in {self.unit}"] if self.guessed else []
        if self.n_naive and self.zone is None:
            notes.append(f"the times of {self.column} have no zone and are taken as UTC; --timezone names another")
        return notes

    def _of_number(self, line: int, cell: str, value: float) -> float:
        if self.unit is None:
            self.unit, self.guessed = unit_between(value, value), True
        if self.unit is None:
            raise self._refusal(line, cell, "no time from 1990 to 2100 in s, ms, us or ns: is it another column?")
        return value / UNITS[self.unit]

    def _of_text(self, line: int, cell: str) -> float:
        try:
            moment = datetime.fromisoformat(cell.strip())
        except ValueError:
            advice = "write ISO 8601, such as 2026-03-01T09:30:00+01:00, or epoch time with --timestamp-unit"
            raise self._refusal(line, cell, advice) from None
        if moment.tzinfo is not None:
            return moment.timestamp()
        self.n_naive += 1
        seconds = moment.replace(tzinfo=self._zone).timestamp()
        later = moment.replace(tzinfo=self._zone, fold=1).timestamp()
        return later if seconds < self._newest <= later else seconds

    def _refusal(self, line: int, cell: str, advice: str) -> BadTable:
        return BadTable(f"line {line}, column {self.column}: the timestamp {quoted(cell)}: {advice}")
