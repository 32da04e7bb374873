"""/session: signing in to the live page once, instead of sending a key with every request."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import checked_tree, decode, read_small
from app.api.queries import read_query
from app.api.routing import JSON, Answer, Operation, Route, answer, ref
from app.api.schemas.session import GrantAnswer, SessionAnswer, SignInBody
from app.api.service import Service, service_of
from app.security import COOKIE, Grant, Scope, Unauthenticated, refuse_cross_site
from app.tickets import csrf_token

_BODY = msgspec.json.Decoder(SignInBody)
FRESH = "no-store"


async def get_session(request: Request) -> Response:
    """Say whether a key is needed, and what the one that signed in may do."""
    read_query(request)
    service = service_of(request)
    held = service.keys.signed_in(request)
    return said(service, request.cookies.get(COOKIE, ""), held)


async def post_session(request: Request) -> Response:
    """Sign in with a key."""
    read_query(request)
    # a page of another site must not sign its visitors in as somebody else
    refuse_cross_site(request, Scope.LABEL)
    service = service_of(request)
    body = await read_small(request)
    key = decode(_BODY, body).key
    checked_tree(body)
    held = service.keys.opened_by(key)
    if not held:
        raise Unauthenticated
    seconds = service.settings.session_seconds
    ticket = service.keys.ticket(held, seconds)
    response = said(service, ticket, held)
    set_cookie(request, response, ticket, seconds)
    return response


async def delete_session(request: Request) -> Response:
    """Sign out: the browser forgets the cookie."""
    read_query(request)
    refuse_cross_site(request, Scope.LABEL)
    response = Response(status_code=204)
    set_cookie(request, response, "", 0)
    return response


def set_cookie(request: Request, response: Response, ticket: str, seconds: int) -> None:
    """Give the browser a cookie that no script and no other site gets at."""
    is_secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, ticket, seconds, path="/", secure=is_secure, httponly=True, samesite="strict")


def said(service: Service, ticket: str, held: tuple[Grant, ...]) -> Response:
    """Say what the entries of a key allow."""
    response = answer(
        SessionAnswer(
            keys_required=service.keys.are_required,
            signed_in=bool(held),
            csrf=csrf_token(ticket, held[0].digest) if held else None,
            scopes=sorted({scope for grant in held for scope in grant.allowed()}) if held else None,
            streams=", ".join(sorted({grant.streams for grant in held})) if held else None,
            grants=[GrantAnswer(sorted(grant.allowed()), grant.streams) for grant in held] if held else None,
        )
    )
    response.headers["Cache-Control"] = FRESH
    return response


ANSWER = {JSON: ref("SessionAnswer")}
ANSWER = {JSON: ref("SessionAnswer")}
COOKIE_SET = {"Set-Cookie": ({"type": "string"}, "the cookie that stands for the key")}
ROUTES = [
    Route(
        "GET",
        "/session",
        get_session,
        Operation(id="get_session", tag="session", summary="Who is signed in?", answers={200: Answer(ANSWER)}),
    ),
    Route(
        "POST",
        "/session",
        post_session,
        Operation(
            id="sign_in",
            tag="session",
            summary="Sign in to the live page",
            body={JSON: ref("SignInBody")},
            answers={200: Answer(ANSWER, headers=COOKIE_SET)},
            problems=("cross_site", "unauthenticated"),
        ),
    ),
    Route(
        "DELETE",
        "/session",
        delete_session,
        Operation(
            id="sign_out",
            tag="session",
            summary="Sign out",
            answers={204: Answer(headers=COOKIE_SET)},
            problems=("cross_site",),
        ),
    ),
]
