"""Makes the arguments of the scripts."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from app.storage.incidents import IncidentRow
from app.storage.interface import Append
from app.storage.redis.reader import OPENED


def append_arguments(one: Append) -> tuple[Any, ...]:
    """Give the arguments of an append."""
    entry, rows = one.entry, incident_fields(one.incidents)
    packed = msgspec.msgpack.encode(entry.ids) if entry.ids else b""
    first = "" if entry.first_seq is None else int(entry.first_seq)
    labels = chain.from_iterable((int(seq), body) for seq, body in one.labels.items())
    arguments = (one.token, str(one.after), str(entry.position), entry.body, first, packed)
    return *arguments, len(rows), *rows, *labels


def incident_fields(rows: Sequence[IncidentRow]) -> list[int | bytes]:
    """Give the fields and values of the hash of incidents."""
    fields: list[int | bytes] = []
    for row in rows:
        fields += row.seq, OPENED.pack(row.opened) + row.body
    return fields


def prefix_range(prefix: str) -> tuple[str, str]:
    """Give the range of names with this prefix; names are ASCII."""
    return (f"[{prefix}", f"({prefix}\x7f") if prefix else ("-", "+")


def milliseconds(seconds: float) -> int:
    """Give a duration as the servers take it."""
    return round(seconds * 1000)
