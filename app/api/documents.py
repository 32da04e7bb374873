"""What /sources, /templates, /rules and /windows have in common: each keeps documents of one kind by name."""

import re
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from app.api.queries import NAME, read_query
from app.api.routing import JSON, OF_STORE, Answer, Contents, Endpoint, Operation, Parameters, Route, ref
from app.api.service import Service, service_of
from app.security import Scope
from app.streams.errors import Refused

ALL: Final = "*"
"""What a document changes for the streams of others takes a key for all streams."""
_NAME: Final = re.compile(NAME["pattern"].strip("^$"))
_NAME_LIMIT: Final = "1 to 64 letters, digits, dots, underscores or hyphens"


def permitted(request: Request, kind: str, scope: Scope, stream: str | None = None) -> tuple[Service, str]:
    """Give the document that the path names, if the request's key may do this, on a stream or on any."""
    service = service_of(request)
    service.keys.permit(request, scope, stream)
    read_query(request)
    return service, request.path_params.get(kind, "")


def refuse_name(kind: str, name: str, invalid: type[Refused]) -> None:
    """Raise the error of a kind for a name that no document can have."""
    if not _NAME.fullmatch(name):
        raise invalid(kind, name, _NAME_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The documents of a kind, as the OpenAPI document describes them.

    `reading` and `changing` are what a key must allow; `refusals` are codes of a document beyond invalid_KIND.
    """

    kind: str
    noun: str
    example: str
    reading: Scope
    changing: Scope
    on_list: str = ""
    on_put: str
    refusals: tuple[str, ...] = ()

    @property
    def path(self) -> Parameters:
        """Describe the parameter that names a document."""
        return {self.kind: (NAME | {"examples": [self.example]}, f"the {self.kind}")}

    def routes(self, *, list_: Endpoint, put: Endpoint, get: Endpoint, delete: Endpoint) -> list[Route]:
        """Give the routes with what answers them."""
        all_of_them = f"/{self.kind}s"
        one = f"{all_of_them}/{{{self.kind}}}"
        return [
            Route("GET", all_of_them, list_, self._list()),
            Route("PUT", one, put, self._put()),
            Route("GET", one, get, self._about_one("get", self.reading, {200: Answer(self._content("Answer"))})),
            Route("DELETE", one, delete, self._about_one("delete", self.changing, {204: Answer()})),
        ]

    def _content(self, form: str) -> Contents:
        return {JSON: ref(f"{self.kind.title()}{form}")}

    def _list(self) -> Operation:
        return Operation(
            id=f"list_{self.kind}s",
            tag=f"{self.kind}s",
            summary=f"List {self.noun}s",
            description=self.on_list,
            scope=self.reading,
            answers={200: Answer(self._content("List"))},
            problems=OF_STORE,
        )

    def _put(self) -> Operation:
        kept = self._content("Answer")
        return Operation(
            id=f"put_{self.kind}",
            tag=f"{self.kind}s",
            summary=f"Keep a {self.noun}",
            description=self.on_put,
            scope=self.changing,
            path=self.path,
            body=self._content("Body"),
            answers={200: Answer(kept, "Replaced"), 201: Answer(kept, "Created")},
            problems=(f"invalid_{self.kind}", *self.refusals, "too_many", *OF_STORE),
        )

    def _about_one(self, verb: str, scope: Scope, answers: dict[int, Answer]) -> Operation:
        return Operation(
            id=f"{verb}_{self.kind}",
            tag=f"{self.kind}s",
            summary=f"{verb.title()} a {self.noun}",
            scope=scope,
            path=self.path,
            answers=answers,
            problems=(f"unknown_{self.kind}", *OF_STORE),
        )
