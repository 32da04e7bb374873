"""The requests that the service answers, one function each: what it is given becomes a `Request`."""

from itan_client.calls.agents import delete_source, get_source, put_source, sources
from itan_client.calls.defaults import delete_template, get_template, put_template, templates
from itan_client.calls.incidents import incident, incidents, label_incident
from itan_client.calls.learned import band, density, grid, model
from itan_client.calls.lifecycle import (
    clone,
    create,
    delete,
    estimate,
    export,
    get,
    import_,
    overview,
    patch,
    reset,
    streams,
    summaries,
)
from itan_client.calls.log import events, history, review, sample
from itan_client.calls.maintenance import delete_window, get_window, put_window, windows
from itan_client.calls.notices import delete_rule, get_rule, put_rule, rules, test_rule
from itan_client.calls.records import ingest, ingest_lines
from itan_client.calls.repairs import accept, check, repair
from itan_client.calls.samples import feedback, observe, observe_in_parts, score

__all__ = [
    "accept",
    "band",
    "check",
    "clone",
    "create",
    "delete",
    "delete_rule",
    "delete_source",
    "delete_template",
    "delete_window",
    "density",
    "estimate",
    "events",
    "export",
    "feedback",
    "get",
    "get_rule",
    "get_source",
    "get_template",
    "get_window",
    "grid",
    "history",
    "import_",
    "incident",
    "incidents",
    "ingest",
    "ingest_lines",
    "label_incident",
    "model",
    "observe",
    "observe_in_parts",
    "overview",
    "patch",
    "put_rule",
    "put_source",
    "put_template",
    "put_window",
    "repair",
    "reset",
    "review",
    "rules",
    "sample",
    "score",
    "sources",
    "streams",
    "summaries",
    "templates",
    "test_rule",
    "windows",
]
