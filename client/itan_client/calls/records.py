"""Records of many streams."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from itan_client.answers.ingest import Ingested
from itan_client.inputs import INFINITE, new_call
from itan_client.request import NDJSON, Request, encode, flag

Record = Mapping[str, Any]
Answering = Literal["all", "flagged", "counts"]


def ingest(
    records: Iterable[Record], *, ids: Literal["auto"] | None = "auto", answer: Answering = "all"
) -> Request[Ingested]:
    """Post records of many streams, each {"stream", "sample", "id", "timestamp"}; each is taken or refused by itself.

    Records without an id get one, so that the request can be repeated and counts once; with ids=None they do not.
    Raises ApiError if no record was taken, or if some still could not be when the time for repeats was over:
    its `refused_records` say why.
    """
    given = [_finite(place, record) for place, record in enumerate(records)]
    if ids == "auto":
        call = new_call()
        given = [
            record if record.get("id") else {**record, "id": f"{call}-{place}"} for place, record in enumerate(given)
        ]
    lines = b"\n".join(map(encode, given))
    return ingest_lines(lines, repeatable=all(record.get("id") for record in given), answer=answer)


def ingest_lines(
    lines: bytes, source: str | None = None, *, repeatable: bool = False, answer: Answering = "all"
) -> Request[Ingested]:
    """Post records as they are, one JSON object a line, in the form of a source.

    Say `repeatable` if every record has an id, or the source makes one of it: then the request can be sent again.
    """
    params = {"answer": answer, "retry": flag(repeatable)} | ({} if source is None else {"source": source})
    return Request("POST", "/ingest", _INGESTED, params, lines, NDJSON, repeatable)


def _finite(place: int, record: Record) -> Record:
    sample = record.get("sample", ())
    if any(value in INFINITE for value in (sample.values() if isinstance(sample, Mapping) else sample)):
        raise ValueError(f"record {place} holds an infinity, which JSON does not have")
    return record


_INGESTED = msgspec.json.Decoder(Ingested).decode
