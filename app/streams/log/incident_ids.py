"""Incidents by their ids."""

import re
from collections.abc import Mapping

from app.storage import IncidentKey as IncidentKey
from app.storage import IncidentRow, Store
from app.streams.errors import UnknownIncident
from app.streams.ids import PATTERN
from app.streams.log.incidents import Incident, read_incident

ID = f"{PATTERN}~[0-9]{{1,16}}~[0-9]{{1,16}}"
_ID = re.compile(f"({PATTERN})~([0-9]{{1,16}})~([0-9]{{1,16}})")


def id_of(stream: str, seq: int, opened: int) -> str:
    """Give the id of an incident: no other has it, also after the stream was deleted and created again."""
    return f"{stream}~{seq}~{opened}"


def read_id(text: str) -> IncidentKey:
    """Read the id of an incident. Raises ValueError for any other text."""
    parts = _ID.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    return IncidentKey(int(parts[3]), parts[1], int(parts[2]))


async def read_one(store: Store, key: IncidentKey) -> Incident:
    """Read an incident. Raises UnknownIncident if there is none."""
    incident = incident_in(await store.find_incidents(key.stream, [key.seq]), key)
    if incident is None:
        raise UnknownIncident(id_of(key.stream, key.seq, key.opened))
    return incident


def incident_in(rows: Mapping[int, IncidentRow], key: IncidentKey) -> Incident | None:
    """Give the incident that has a place among rows of its stream."""
    row = rows.get(key.seq)
    return read_incident(row) if row is not None and row.opened == key.opened else None
