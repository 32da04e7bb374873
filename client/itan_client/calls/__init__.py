"""The requests that the service answers, one function each: what it is given becomes a `Request`."""

from itan_client.calls.agents import delete_source, get_source, put_source, sources
from itan_client.calls.learned import band, density, grid, model
from itan_client.calls.lifecycle import (
    create,
    delete,
    estimate,
    export,
    get,
    import_,
    reset,
    streams,
    summaries,
)
from itan_client.calls.log import events, history, review, sample
from itan_client.calls.notices import delete_rule, get_rule, put_rule, rules, test_rule
from itan_client.calls.records import ingest, ingest_lines
from itan_client.calls.repairs import accept, check, repair
from itan_client.calls.samples import feedback, observe, observe_in_parts, score

__all__ = [
    "accept",
    "band",
    "check",
    "create",
    "delete",
    "delete_rule",
    "delete_source",
    "density",
    "estimate",
    "events",
    "export",
    "feedback",
    "get",
    "get_rule",
    "get_source",
    "grid",
    "history",
    "import_",
    "ingest",
    "ingest_lines",
    "model",
    "observe",
    "observe_in_parts",
    "put_rule",
    "put_source",
    "repair",
    "reset",
    "review",
    "rules",
    "sample",
    "score",
    "sources",
    "streams",
    "summaries",
    "test_rule",
]
