"""What can go wrong with a request."""

from collections.abc import Mapping
from typing import Any, Final

import httpx2
import msgspec

from itan_client.answers.ingest import RefusedRecord

EXCERPT: Final = 200


class ApiError(Exception):
    """The service refused or failed: `problem` is the document that it answered."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after_seconds: float | None = None) -> None:
        self.status = status
        self.problem = dict(problem)
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{self.detail} [{status} {self.code}]")

    @property
    def code(self) -> str:
        """Give the stable name of the problem."""
        return str(self.problem.get("code", "unknown"))

    @property
    def detail(self) -> str:
        """Say in one sentence what is wrong."""
        return str(self.problem.get("detail") or self.problem.get("title") or "no detail given")

    @property
    def refused_records(self) -> list[RefusedRecord]:
        """Give what was wrong with each record, if `ingest` failed as a whole."""
        return msgspec.convert(self.problem.get("problems", []), list[RefusedRecord])


class ServiceUnreachable(ConnectionError):
    """No answer came. If the request was sent, nobody knows whether it counts."""

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent


def api_error(answer: httpx2.Response) -> ApiError:
    """Read an answer that is no success; its body must be there."""
    return ApiError(answer.status_code, _problem(answer), _retry_after(answer))


def unreachable(url: object, error: httpx2.TransportError) -> ServiceUnreachable:
    """Say that no answer came, and whether the service may have got the request."""
    is_unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
    return ServiceUnreachable(f"no answer from {url}: {error or type(error).__name__}", was_sent=not is_unsent)


def _problem(answer: httpx2.Response) -> dict[str, Any]:
    try:
        return msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        # a proxy in between answers in its own words
        return {"code": "not_a_problem_document", "detail": answer.text[:EXCERPT].strip() or answer.reason_phrase}


def _retry_after(answer: httpx2.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None
