"""GET /streams: the streams that a key may read, page by page."""

from starlette.requests import Request
from starlette.responses import Response

from app.api.queries import flag_in, read_query, whole, whole_in
from app.api.routing import JSON, OF_STORE, Answer, Operation, Parameters, Route, answer, ref
from app.api.service import service_of
from app.security import Scope
from app.streams.ids import NOT_DOTS, PATTERN, checked_stream_id

PAGE_SIZES = (1, 1000, 100)
DETAILED_SIZES = (1, 100, 50)
SILENT_SECONDS = (0, 999_999_999)


async def get_streams(request: Request) -> Response:
    """List streams, page by page."""
    service = service_of(request)
    query = read_query(request, "limit", "after", "details", "silent_seconds")
    details, after = flag_in(query, "details", default=False), query.get("after", "")
    limit = whole_in(query, "limit", *(DETAILED_SIZES if details else PAGE_SIZES))
    service.keys.permit(request, Scope.READ)
    names = await visible(request, checked_stream_id(after) if after else "", limit + 1)
    shown, following = names[:limit], names[limit - 1] if len(names) > limit else None
    if "silent_seconds" in query:
        silences = await service.catalog.silences(shown)
        least = silent_seconds_in(query)
        shown = [name for name in shown if name in silences and silences[name].seconds >= least]
    page = await service.catalog.overviews(shown) if details else [{"stream": name} for name in shown]
    return answer({"streams": page, "next": following})


def silent_seconds_in(query: dict[str, str]) -> int:
    """Give the seconds for which a stream must be silent; 0: need not."""
    return whole_in(query, "silent_seconds", *SILENT_SECONDS, 0)


async def visible(request: Request, after: str, most: int) -> list[str]:
    """Give the first streams after an id that the request may read: of others not even the name is told."""
    service, found, n_read = service_of(request), list[str](), most
    while len(found) < most:
        names = await service.catalog.names(after, n_read)
        found += service.keys.visible(request, names)
        if len(names) < n_read:
            break
        after, n_read = names[-1], PAGE_SIZES[1]
    return found[:most]


AFTER = {"type": "string", "pattern": rf"^({NOT_DOTS}{PATTERN})?$", "default": ""}
LIMIT = {"type": "integer", "minimum": 1, "maximum": PAGE_SIZES[1], "examples": [50]}
SILENT = whole(*SILENT_SECONDS, 0)
PAGE_QUERY: Parameters = {
    "limit": (LIMIT, "most streams in the answer; with details at most 100, by default 50"),
    "after": (AFTER, "list the streams after this id"),
    "details": ({"type": "boolean", "default": False}, "true: with the state of each"),
    "silent_seconds": (SILENT, "list only streams that have been silent for at least so long; pages may be shorter"),
}

ROUTES = [
    Route(
        "GET",
        "/streams",
        get_streams,
        Operation(
            id="list_streams",
            tag="streams",
            summary="List streams",
            scope=Scope.READ,
            query=PAGE_QUERY,
            optional=frozenset({"limit"}),
            answers={200: Answer({JSON: ref("StreamPage")})},
            problems=("invalid_stream_id", *OF_STORE),
        ),
    ),
]
