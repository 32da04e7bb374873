"""GET /streams: the streams that a key may read, page by page; GET /overview: all of them in sum."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.found_incidents import PREFIX, read_prefix
from app.api.queries import flag_in, read_as, read_query, whole, whole_in
from app.api.routing import JSON, OF_STORE, Answer, Operation, Parameters, Route, answer, ref
from app.api.schemas.streams import FleetAnswer
from app.api.service import service_of
from app.security import Scope
from app.streams.ids import NOT_DOTS, PATTERN, checked_stream_id
from app.streams.views.fleet import Visible
from app.streams.views.orders import CURSOR, ORDERS, Cursor, Order

PAGE_SIZES = (1, 1000, 100)
DETAILED_SIZES = (1, 100, 50)
SILENT_SECONDS = (0, 999_999_999)
SILENT_BY_DEFAULT = 3600
MOST_NAMED = 10
LAST = "\x7f"
ORDER: dict[str, Order] = {order: order for order in ORDERS}


async def get_streams(request: Request) -> Response:
    """List streams, page by page."""
    service = service_of(request)
    query = read_query(request, "limit", "after", "details", "silent_seconds", "prefix", "search", "order")
    details, prefix, search = flag_in(query, "details", default=False), prefix_in(query), search_in(query)
    order: Order = read_as(query, "order", ORDER.__getitem__, ", ".join(ORDERS), "name")
    limit = whole_in(query, "limit", *(DETAILED_SIZES if details else PAGE_SIZES))
    service.keys.permit(request, Scope.READ)
    if order == "name" and not search:
        after = query.get("after", "")
        shown, following = await by_name(request, checked_stream_id(after, "after") if after else "", limit, prefix)
    else:
        place = read_as(query, "after", read_place, "`next` of the page before", None)
        shown, at = await service.catalog.in_order(order, place, limit, asked_for(request, search), prefix)
        following = None if at is None else str(at)
    if "silent_seconds" in query:
        silences = await service.catalog.silences(shown)
        least = silent_seconds_in(query)
        shown = [name for name in shown if name in silences and silences[name].seconds >= least]
    page = await service.catalog.overviews(shown) if details else [{"stream": name} for name in shown]
    return answer({"streams": page, "next": following})


async def get_overview(request: Request) -> Response:
    """Sum up the streams that a key may read."""
    service = service_of(request)
    query = read_query(request, "prefix", "silent_seconds")
    prefix, silent = prefix_in(query), whole_in(query, "silent_seconds", *SILENT_SECONDS, SILENT_BY_DEFAULT)
    service.keys.permit(request, Scope.READ)
    summed = await service.catalog.sum_up(asked_for(request), prefix, silent)
    totals = msgspec.structs.asdict(summed.end())
    in_incident, to_review = summed.first("incidents", MOST_NAMED), summed.first("review", MOST_NAMED)
    said = {one.stream: one for one in await service.catalog.overviews(list({*in_incident, *to_review}))}
    incidents = [one for name in in_incident if (one := said.get(name)) and one.incident is not None]
    review = [one for name in to_review if (one := said.get(name)) and one.to_review]
    return answer(FleetAnswer(**totals, incidents=incidents, review=review))


def prefix_in(query: dict[str, str]) -> str:
    """Give what the ids of the streams must begin with."""
    return read_as(query, "prefix", read_prefix, "the beginning of a stream id", "")


def search_in(query: dict[str, str]) -> str:
    """Give the text that the ids must hold, in small letters."""
    return read_as(query, "search", read_prefix, "a part of a stream id", "").lower()


def read_place(text: str) -> Cursor | None:
    """Read a place in an order; the beginning if it is empty. Raises ValueError."""
    return Cursor.parse(text) if text else None


def silent_seconds_in(query: dict[str, str]) -> int:
    """Give the seconds for which a stream must be silent; 0: need not."""
    return whole_in(query, "silent_seconds", *SILENT_SECONDS, 0)


def asked_for(request: Request, search: str = "") -> Visible:
    """Choose the streams that the request may read and whose ids hold a text: of others not even the name is told."""
    keys = service_of(request).keys

    def choose(names: list[str]) -> list[str]:
        return keys.visible(request, [name for name in names if search in name.lower()] if search else names)

    return choose


async def by_name(request: Request, after: str, limit: int, prefix: str) -> tuple[list[str], str | None]:
    """Give the first streams after an id, and the id to go on from if there are more."""
    catalog, choose = service_of(request).catalog, asked_for(request)
    found, n_read = list[str](), limit + 1
    after = max(after, just_before(prefix))
    while len(found) <= limit:
        names = await catalog.names(after, n_read)
        named = [name for name in names if name.startswith(prefix)]
        found += choose(named)
        if len(named) < n_read:
            break
        after, n_read = names[-1], PAGE_SIZES[1]
    return found[:limit], found[limit - 1] if len(found) > limit else None


def just_before(prefix: str) -> str:
    """Give a text between the ids that begin with a prefix and all that come before those."""
    return prefix and prefix[:-1] + chr(ord(prefix[-1]) - 1) + LAST


AFTER = {"type": "string", "pattern": rf"^({NOT_DOTS}{PATTERN}|{CURSOR})?$", "default": ""}
LIMIT = {"type": "integer", "minimum": 1, "maximum": PAGE_SIZES[1], "examples": [50]}
SILENT = whole(*SILENT_SECONDS, 0)
PART = {"type": "string", "pattern": f"^{PREFIX}$", "default": ""}
IN_ORDER = {"type": "string", "enum": list(ORDERS), "default": "name"}
PAGE_QUERY: Parameters = {
    "limit": (LIMIT, "most streams in the answer; with details at most 100, by default 50"),
    "after": (AFTER, "list the streams after this place: `next` of the page before; in the order of names, an id"),
    "details": ({"type": "boolean", "default": False}, "true: with the state of each"),
    "silent_seconds": (SILENT, "list only streams that have been silent for at least so long; pages may be shorter"),
    "prefix": (PART, "list only streams whose ids begin so"),
    "search": (PART, "list only streams whose ids hold this, in capitals or not"),
    "order": (
        IN_ORDER,
        "by id; or the most flagged lately, in an incident, longest silent, to review, in warm-up first",
    ),
}
OVERVIEW_QUERY: Parameters = {
    "prefix": (PART, "only streams whose ids begin so"),
    "silent_seconds": (whole(*SILENT_SECONDS, SILENT_BY_DEFAULT), "when a stream counts as silent"),
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
    Route(
        "GET",
        "/overview",
        get_overview,
        Operation(
            id="get_overview",
            tag="streams",
            summary="Sum up the streams",
            scope=Scope.READ,
            query=OVERVIEW_QUERY,
            answers={200: Answer({JSON: ref("FleetAnswer")})},
            problems=OF_STORE,
        ),
    ),
]
