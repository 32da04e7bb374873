"""Sends records to a service, and says what became of each."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from app.ingestion.cutting import Record
from itan_client import ApiError, Client, RefusedRecord

TOO_LARGE: Final = {"too_many", "body_too_large"}
NOTHING_TAKEN: Final = "nothing_taken"
FORBIDDEN: Final = 403


@dataclass
class Tally:
    """What became of records, and the line of the last one whose outcome is known."""

    taken: int = 0
    flagged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    last_line: int = 0

    @property
    def records(self) -> int:
        """Count all."""
        return self.taken + self.refused.total()


class Sender:
    """Sends bundles of records, in order; `refused` is told of each refused record, and the line that it began on.

    Records in the service's own form get ids if they have none, so that a request can be repeated. What a source reads
    is sent as it is, and repeated if the source makes ids.
    """

    def __init__(self, client: Client, source: str | None, refused: Callable[[int, RefusedRecord], object]) -> None:
        self.tally = Tally()
        self._client, self._source, self._refused = client, source, refused
        self._has_ids = source is not None and makes_ids(client, source)

    def send(self, bundle: Sequence[Record]) -> None:
        """Send a bundle, in parts if the service takes no more at once. Raises ApiError if some must be sent again."""
        texts = [record.text for record in bundle]
        repeatable = self._has_ids
        if self._source is None:
            texts, repeatable = with_ids(texts)
        try:
            told = self._client.ingest_lines(b"\n".join(texts), self._source, repeatable=repeatable, answer="flagged")
        except ApiError as error:
            self._failed(bundle, error)
            return
        self.tally.taken += told.taken
        self.tally.flagged += told.flagged
        self._note(bundle, told.problems or [])
        self.tally.last_line = bundle[-1].line

    def _failed(self, bundle: Sequence[Record], error: ApiError) -> None:
        """Send what was too much at once in two parts; note why no record was taken."""
        if error.code in TOO_LARGE and len(bundle) > 1:
            middle = len(bundle) // 2
            self.send(bundle[:middle])
            self.send(bundle[middle:])
            return
        if error.code != NOTHING_TAKEN:
            raise error
        self._note(bundle, error.refused_records)
        self.tally.last_line = bundle[-1].line

    def _note(self, bundle: Sequence[Record], problems: Iterable[RefusedRecord]) -> None:
        for problem in problems:
            self.tally.refused[problem.code] += 1
            self._refused(bundle[problem.record].line, problem)


def makes_ids(client: Client, name: str) -> bool:
    """Tell whether a source gives its records ids; of a key that may only send, the answer is not known.

    Raises ValueError for a source whose records cannot be cut into requests.
    """
    try:
        source = client.get_source(name)
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        return False
    if source.format != "json" or source.join_seconds is not None:
        raise ValueError(f"source {name} reads whole requests, not single records of JSON")
    return source.id != ""


class _Known(msgspec.Struct):
    stream: Any
    id: Any = msgspec.UNSET


def with_ids(texts: Sequence[bytes]) -> tuple[list[bytes], bool]:
    """Give each record an id if it has none, and tell whether all have one by now."""
    request = secrets.token_hex(8)
    found = [with_id(text, f"{request}-{place}") for place, text in enumerate(texts)]
    return [text for text, _ in found], all(has_id for _, has_id in found)


def with_id(text: bytes, new_id: str) -> tuple[bytes, bool]:
    """Give a record an id if it has none; one that cannot be read is left to the service, which takes nothing of it."""
    try:
        known = _KNOWN.decode(text)
    except (ValueError, RecursionError):
        return text, True
    if known.id is not msgspec.UNSET:
        return text, bool(known.id)
    return b'%s,"id":"%s"}' % (text.rstrip()[:-1].rstrip(), new_id.encode()), True


_KNOWN: Final = msgspec.json.Decoder(_Known)
