"""Refuses what is no measurement as a feature of a new stream, unless somebody declares it."""

from collections.abc import Sequence
from typing import Final

from app.streams.errors import InvalidSamples

NO_MEASUREMENTS: Final = frozenset(("date", "time", "timestamp", "ts", "row", "index", "label"))
DAY_SECONDS: Final = 86_400.0
UNITS: Final = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
DECLARE: Final = "left out, or declared as a feature with PUT /streams/S"


def refuse_undeclared(names: Sequence[str], values: Sequence[float | None], field: str, now: float) -> None:
    """Raise InvalidSamples for a first sample with a value that looks like the present time, or is called like one."""
    for column, value in enumerate(values):
        place = f"{field}[0].{names[column]}" if names else f"{field}[0][{column}]"
        if names and names[column].lower() in NO_MEASUREMENTS:
            raise InvalidSamples(place, value, f"{DECLARE}: by its name it is no measurement")
        if value is not None and (unit := unit_of_time(value, now)):
            raise InvalidSamples(place, value, f"{DECLARE}: it looks like a Unix time in {unit}")


def unit_of_time(value: float, now: float) -> str:
    """Give the unit in which a value is a time within a day from now; empty if it is none."""
    return next((unit for unit, factor in UNITS.items() if abs(value / factor - now) < DAY_SECONDS), "")
