"""Says what is wrong with one sample, id or time of a body, given its JSON; the field is what follows the row's own."""

from collections.abc import Iterable
from typing import Any

import msgspec

from app.api.bodies.json_tree import REPEATED, Object, Unheld
from app.api.bodies.wording import HELD, ID, NUMBER, ROW, TIME, left_out
from app.api.schemas.samples import ObserveLine
from app.api.schemas.types import ClientId, Moment
from app.streams.faults import Fault

WRAPPER = ObserveLine.__struct_fields__


def row_fault(row: Any) -> Fault:
    """Say what is wrong with a sample."""
    if isinstance(row, Object) and row.repeated is not None:
        return Fault(f".{row.repeated}", row[row.repeated], REPEATED)
    for place, value in values_of(row):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            return Fault(place, value, f"{HELD}, or null" if isinstance(value, Unheld) else NUMBER)
    return Fault("", row, ROW)


def values_of(row: Any) -> Iterable[tuple[str, Any]]:
    """Give the values of a sample with their places in it."""
    if isinstance(row, dict):
        return ((f".{name}", value) for name, value in row.items())
    return ((f"[{i}]", value) for i, value in enumerate(row)) if isinstance(row, list) else ()


def id_fault(value: Any) -> Fault:
    """Say what is wrong with an id."""
    return Fault("", value, ID)


def time_fault(value: Any) -> Fault:
    """Say what is wrong with a time."""
    return Fault("", value, TIME)


def line_fault(line: Any) -> tuple[str, Fault]:
    """Say what is wrong with a line of NDJSON, and in which part of the batch: samples, ids or timestamps."""
    if not (isinstance(line, dict) and isinstance(line.get("sample"), list | dict)):
        return "samples", row_fault(line)
    unknown = next((name for name in line if name not in WRAPPER), None)
    if unknown is not None:
        return "samples", Fault(f".{unknown}", line[unknown], left_out(unknown, WRAPPER))
    if "id" in line and not is_a(ClientId | None, line["id"]):
        return "ids", id_fault(line["id"])
    if "timestamp" in line and not is_a(Moment | None, line["timestamp"]):
        return "timestamps", time_fault(line["timestamp"])
    return "samples", row_fault(line["sample"])


def is_a(kind: Any, value: Any) -> bool:
    """Tell whether a value is of a type of the bodies."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
