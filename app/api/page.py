"""The pages: built files, the same for everybody; what they show they read like any client."""

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.api.routing import JSON, Answer, Operation, Route

FOLDER = Path(__file__).parents[1] / "ui" / "dist"
INDEX = "index.html"
DOCS = "docs.html"
HTML = "text/html"
MEDIA = {".html": HTML, ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
NOT_BUILT = "the page was not built into this installation: see app/ui"
HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "font-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # names stay the same from version to version: browsers ask, and are told that nothing has changed
    "Cache-Control": "no-cache",
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is answered."""

    body: bytes
    media: str
    tag: str

    def answer(self, request: Request) -> Response:
        """Give the file, or say that the browser's copy is good."""
        headers = HEADERS | {"ETag": self.tag}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.media, headers=headers)


def read_assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """Read the page's files, by name."""
    files = sorted(path for path in folder.glob("*") if path.suffix in MEDIA)
    if not any(path.name == INDEX for path in files):
        logger.warning("the live page is missing: %s has no %s", folder, INDEX)
    return {path.name: asset(path.read_bytes(), MEDIA[path.suffix]) for path in files}


def asset(body: bytes, media: str) -> Asset:
    """Give a file its name for caches."""
    return Asset(body, media, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


async def get_page(request: Request) -> Response:
    """Give the live page."""
    return found(request, INDEX, NOT_BUILT)


async def get_docs(request: Request) -> Response:
    """Give the page that shows the interface."""
    return found(request, DOCS, NOT_BUILT)


async def get_openapi(request: Request) -> Response:
    """Give the interface to programs."""
    return cast(Asset, request.app.state.openapi).answer(request)


async def get_asset(request: Request) -> Response:
    """Give a file of the live page."""
    return found(request, request.path_params["file"], "Not Found")


def found(request: Request, name: str, otherwise: str) -> Response:
    """Answer with a file; only names that were there at the start are known, so that no path leads elsewhere."""
    assets = cast(dict[str, Asset], request.app.state.assets)
    if name not in assets:
        raise HTTPException(404, otherwise)
    return assets[name].answer(request)


TEXT = {"type": "string"}
CACHED = {"ETag": (TEXT, "changes with the file")}
ASKED_WITH = {"If-None-Match": (TEXT, "the ETag of the cached copy")}
UNCHANGED = Answer(description="The cached copy is current", headers=CACHED)
ROUTES = [
    Route(
        "GET",
        "/",
        get_page,
        Operation(
            id="get_page",
            tag="page",
            summary="See the live page",
            headers=ASKED_WITH,
            answers={200: Answer({HTML: TEXT}, headers=CACHED), 304: UNCHANGED},
            problems=("not_found",),
            reads_query=False,
        ),
    ),
    Route(
        "GET",
        "/docs",
        get_docs,
        Operation(
            id="get_docs",
            tag="page",
            summary="Read about the interface, and try it",
            headers=ASKED_WITH,
            answers={200: Answer({HTML: TEXT}, headers=CACHED), 304: UNCHANGED},
            problems=("not_found",),
            reads_query=False,
        ),
    ),
    Route(
        "GET",
        "/openapi.json",
        get_openapi,
        Operation(
            id="get_openapi",
            tag="page",
            summary="Get this document",
            headers=ASKED_WITH,
            answers={200: Answer({JSON: {"type": "object"}}, headers=CACHED), 304: UNCHANGED},
            reads_query=False,
        ),
    ),
    Route(
        "GET",
        "/ui/{file}",
        get_asset,
        Operation(
            id="get_page_file",
            tag="page",
            summary="Get a file of the live page",
            path={"file": ({"type": "string", "examples": ["app.js"]}, "its name")},
            headers=ASKED_WITH,
            answers={200: Answer(dict.fromkeys(MEDIA.values(), TEXT), headers=CACHED), 304: UNCHANGED},
            problems=("not_found",),
            reads_query=False,
        ),
    ),
]
