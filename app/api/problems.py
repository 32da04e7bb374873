"""Errors as problem documents (RFC 9457): one table from exception to status and code."""

import math
from collections.abc import Mapping, Sequence

import msgspec
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.api.bodies.reading import BodyTooLarge, InvalidBody, InvalidJson, UnsupportedMedia
from app.api.queries import InvalidQuery
from app.api.refusals import (
    HeadTooLarge,
    InvalidHttp,
    NothingTaken,
    PartlyTaken,
    TooManyBodies,
    TooManyConnections,
    TooSlow,
)
from app.api.routing import PROBLEM, allowed
from app.api.schemas.service import Problem, Wrong
from app.api.service import service_of
from app.documents import UnknownDocument
from app.hosts import UnknownHost
from app.logs.context import note
from app.metrics import Metrics
from app.notices.catalog import UnknownRule
from app.notices.rule import InvalidRule
from app.security import BeyondRate, CrossSite, CsrfTokenNeeded, Forbidden, KeyFull, RateLimited, Unauthenticated
from app.sources.catalog import UnknownSource
from app.sources.errors import InvalidMessage, InvalidRecord
from app.sources.source import InvalidSource
from app.streams.errors import (
    ArchiveUnavailable,
    Fenced,
    IdConflict,
    InvalidIds,
    InvalidSamples,
    InvalidStreamId,
    InvalidTimestamps,
    LeaseHeld,
    NotSilent,
    Refused,
    RepairLoses,
    ReplayMismatch,
    StaleWriter,
    Stopping,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    StreamAppeared,
    StreamExists,
    StreamNotFound,
    TooMany,
    TooManyStreams,
    TooManyWatchers,
    TooManyWatchersOfKey,
    UnknownIncident,
    UnknownSample,
    UnknownStream,
)
from app.streams.faults import FIELD_CHARACTERS, Fault, cut, scalar
from app.streams.log.events import UnreadableEvent
from app.templates import InvalidTemplate, UnknownTemplate
from app.windows import InvalidWindow, UnknownWindow
from app.workers.errors import HolderUnreachable, NotAWorker, RefusedByHolder
from core import InvalidConfig, InvalidObservation, InvalidSnapshot, InvalidState, NotReady

STORE_UNAVAILABLE = (
    503,
    "store_unavailable",
    "The store is not available: try again, with ids so that nothing counts twice",
)
TABLE: dict[type[Exception], tuple[int, str, str]] = {
    InvalidHttp: (400, "invalid_http", "The request is not valid HTTP"),
    InvalidQuery: (400, "invalid_query", "A query parameter is not valid"),
    InvalidStreamId: (400, "invalid_stream_id", "The stream id is not valid"),
    PartlyTaken: (400, "partly_taken", "Some records were not taken"),
    InvalidMessage: (400, "invalid_message", "The body is no message of the source's format"),
    InvalidJson: (400, "invalid_json", "The body is not valid JSON"),
    Unauthenticated: (401, "unauthenticated", "A valid key is needed"),
    CrossSite: (403, "cross_site", "A page of another site may not do this"),
    CsrfTokenNeeded: (403, "csrf_token_needed", "A change made with the cookie needs its token"),
    Forbidden: (403, "forbidden", "The key does not allow this"),
    NotAWorker: (403, "not_a_worker", "Only another worker may do this"),
    NotSilent: (409, "not_silent", "The stream has been written to in the meantime"),
    UnknownStream: (404, "unknown_stream", "There is no such stream"),
    StreamNotFound: (404, "unknown_stream", "There is no such stream"),
    UnknownSource: (404, "unknown_source", "There is no such source"),
    UnknownRule: (404, "unknown_rule", "There is no such rule"),
    UnknownTemplate: (404, "unknown_template", "There is no such template"),
    UnknownWindow: (404, "unknown_window", "There is no such maintenance window"),
    UnknownSample: (404, "unknown_sample", "The stream's log holds no such sample"),
    UnknownIncident: (404, "unknown_incident", "There is no such incident"),
    IdConflict: (409, "id_conflict", "The id belongs to a sample with other values"),
    StreamExists: (409, "stream_exists", "The stream exists with another config"),
    RepairLoses: (409, "repair_loses", "The repair would lose data"),
    NotReady: (409, "not_ready", "The stream is still warming up"),
    TooSlow: (408, "too_slow", "The request arrives too slowly"),
    BodyTooLarge: (413, "body_too_large", "The body is too large"),
    TooMany: (413, "too_many", "The request holds too many items"),
    BeyondRate: (413, "too_many", "The request holds too many items"),
    UnsupportedMedia: (415, "unsupported_media_type", "The service does not read bodies of this type"),
    UnknownHost: (421, "unknown_host", "The service does not answer to this host name"),
    InvalidBody: (422, "invalid_body", "The body does not have the right form"),
    InvalidSamples: (422, "invalid_samples", "The samples are not valid"),
    InvalidObservation: (422, "invalid_samples", "The samples are not valid"),
    InvalidIds: (422, "invalid_ids", "The ids are not valid"),
    InvalidTimestamps: (422, "invalid_timestamps", "The timestamps are not plausible"),
    InvalidConfig: (422, "invalid_config", "The config is not valid"),
    InvalidSource: (422, "invalid_source", "The source is not valid"),
    InvalidRecord: (422, "invalid_body", "The body does not have the right form"),
    InvalidRule: (422, "invalid_rule", "The rule is not valid"),
    InvalidTemplate: (422, "invalid_template", "The template is not valid"),
    InvalidWindow: (422, "invalid_window", "The maintenance window is not valid"),
    InvalidSnapshot: (422, "invalid_snapshot", "The body is not a usable export"),
    NothingTaken: (422, "nothing_taken", "No record was taken"),
    TooManyStreams: (429, "quota_exceeded", "A limit is reached"),
    TooManyWatchersOfKey: (429, "quota_exceeded", "A limit is reached"),
    KeyFull: (429, "quota_exceeded", "A limit is reached"),
    RateLimited: (429, "rate_limited", "The key has used up its rate limit"),
    HeadTooLarge: (431, "head_too_large", "The request line and the headers are too large"),
    ClientDisconnect: (400, "client_disconnected", "The client went away"),
    StoreUnavailable: STORE_UNAVAILABLE,
    ArchiveUnavailable: STORE_UNAVAILABLE,
    StaleWriter: (503, "stream_moved", "Another writer has changed the stream; this request changed nothing"),
    Fenced: (503, "stream_moved", "Another writer has changed the stream; this request changed nothing"),
    LeaseHeld: (503, "stream_elsewhere", "Another worker serves the stream; this request changed nothing"),
    StreamAppeared: (503, "stream_moved", "Another writer has changed the stream; this request changed nothing"),
    HolderUnreachable: (
        503,
        "holder_unreachable",
        "The worker that holds the stream does not answer: try again, with ids so that nothing counts twice",
    ),
    ReplayMismatch: (503, "replay_mismatch", "A replay of the stream's log gives other scores than the log holds"),
    StoreCorrupt: (500, "store_corrupt", "The stored data of the stream cannot be read"),
    InvalidState: (
        500,
        "invalid_state",
        "The stream's state is not valid and cannot be stored or exported; its log is complete",
    ),
    UnreadableEvent: (500, "store_corrupt", "The stored data of the stream cannot be read"),
    TooManyWatchers: (503, "too_many_watchers", "Too many clients are watching"),
    Stopping: (503, "stopping", "The service is shutting down"),
    TooManyConnections: (503, "too_many_connections", "There are too many connections"),
    TooManyBodies: (503, "too_many_bodies", "Too many request bodies are arriving at once"),
    Exception: (500, "internal_error", "The service failed"),
}
HTTP_CODES = {404: "not_found", 405: "method_not_allowed"}
STORE_REASONS: dict[type[StoreError], str] = {
    StoreUnavailable: "unavailable",
    ArchiveUnavailable: "unavailable",
    StaleWriter: "stale",
    Fenced: "stale",
    LeaseHeld: "elsewhere",
    StreamNotFound: "missing",
    StoreCorrupt: "corrupt",
    StoreError: "other",
}
RETRY_AFTER_SECONDS = 1
FULL_SECONDS = 60
LIMITS = (TooManyStreams, TooManyWatchers, KeyFull, RateLimited, BeyondRate)


def handle_problems(app: FastAPI) -> None:
    """Let every error of the table, and all others, be answered as a problem."""
    for kind in TABLE:
        app.add_exception_handler(kind, answer_problem)
    app.add_exception_handler(HTTPException, answer_http)


async def answer_problem(request: Request, error: Exception) -> Response:
    """Answer an exception of the table."""
    count_problem(service_of(request).metrics, error)
    document = problem_of(error)
    return respond(document, headers_of(document.status, error))


def count_problem(metrics: Metrics, error: Exception) -> None:
    """Count what the store or a limit refused."""
    if isinstance(error, StoreError):
        metrics.store_errors[STORE_REASONS[type(error)]].inc()
    if isinstance(error, LIMITS):
        metrics.refusals.count(error.limit_name, error.key)


def problem_of(error: Exception) -> Problem:
    """Describe an error as the table has it, or as another worker has described it."""
    if isinstance(error, RefusedByHolder):
        return msgspec.msgpack.decode(error.problem, type=Problem)
    status, code, title = next(TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)
    error = in_json(error)
    # what went wrong inside is for the log, not for strangers
    detail = title if code == "internal_error" else str(error) or title
    return problem(status, code, title, detail, error)


async def answer_http(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    code = HTTP_CODES.get(error.status_code, "refused")
    field, value, limit = "path", request.url.path, "a path of the interface, see /docs"
    headers = error.headers
    if error.status_code == 405:
        field, value = "method", request.method
        limit = ", ".join(allowed(request.app.router.routes, request.scope))
        headers = {"Allow": limit}
    document = Problem(f"urn:itan:{code}", error.detail, error.status_code, f"{error.detail}: {scalar(value)!s}", code)
    blame(document, [Fault(field, value, limit)])
    return respond(document, headers)


def problem(status: int, code: str, title: str, detail: str, error: Exception) -> Problem:
    """Describe an error by what it carries."""
    document = Problem(f"urn:itan:{code}", title, status, detail, code)
    match error:
        case Refused():
            blame(document, error.faults, error.n_faults)
        case UnknownStream() | UnknownDocument() | UnknownSample() | UnknownIncident() | StreamExists() | NotSilent():
            blame(document, [Fault(error.field, error.value, error.limit)])
        case UnknownHost():
            blame(document, [Fault("host", error.host, "a name in ITAN_ALLOWED_HOSTS")])
        case InvalidSnapshot():
            blame(document, [Fault("body", None, f"an export of this service: {error.reason}")])
        case TooManyStreams():
            blame(document, [Fault("streams", error.count, error.bound.text)])
        case TooManyWatchers():
            blame(document, [Fault("watchers", error.most, error.limit)])
        case KeyFull():
            blame(document, [Fault("bytes", error.kept, error.limit)])
        case RateLimited() | BeyondRate():
            blame(document, [Fault(error.limit_name, error.cost, error.limit)])
        case NotReady():
            document.samples_needed = error.samples_needed
    return document


def in_json(error: Exception) -> Exception:
    """Give what core refuses as a refusal of the service, which writes values as JSON does."""
    match error:
        case InvalidObservation():
            return Refused(located(error), error.value, error.limit)
        case InvalidConfig():
            return Refused(error.field, error.value, error.limit)
    return error


def blame(document: Problem, faults: Sequence[Fault], n_faults: int = 1) -> None:
    """Name what was wrong where."""
    document.errors = [Wrong(cut(fault.field, FIELD_CHARACTERS), scalar(fault.value), fault.limit) for fault in faults]
    document.n_errors, first = n_faults, document.errors[0]
    document.field, document.value, document.limit = first.field, first.value, first.limit


def located(error: InvalidObservation) -> str:
    """Give the field with the row and column that core names apart."""
    return error.field + "".join(f"[{place}]" for place in (error.row, error.column) if place is not None)


def headers_of(status: int, error: Exception) -> dict[str, str]:
    """Give the headers that a status asks for."""
    if status == 401:
        return {"WWW-Authenticate": 'Bearer realm="itan"'}
    if status not in (429, 503):
        return {}
    seconds = FULL_SECONDS if status == 429 else RETRY_AFTER_SECONDS
    if isinstance(error, LeaseHeld | RateLimited | KeyFull | HolderUnreachable):
        wait_seconds = error.kept_seconds if isinstance(error, LeaseHeld) else error.seconds
        seconds = max(RETRY_AFTER_SECONDS, math.ceil(wait_seconds))
    return {"Retry-After": str(seconds)}


def respond(document: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Answer a problem."""
    note(problem=document)
    return Response(msgspec.json.encode(document), document.status, headers, media_type=PROBLEM)
