"""A client of the HTTP interface of Prometheus: one query over a range of time."""

import ssl
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

import httpx2
import msgspec

from app.pull.access import Access, Credentials
from app.pull.errors import Permanent, Temporary, TooMuch, Unanswerable

MOST_POINTS: Final = 11_000
"""Prometheus refuses ranges of more steps."""
MOST_BYTES: Final = 1 << 26
SPARE_SECONDS: Final = 5
"""The wait for an answer is this much longer than the time that Prometheus has for it."""
TEMPORARY: Final = {408, 425, 429}
LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}
EXCERPT: Final = 200


class Series(msgspec.Struct, frozen=True):
    """The values of one series: times in epoch seconds, numbers as texts."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    histograms: list[msgspec.Raw] = []


class Matrix(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a query over a range."""

    result: list[Series]


class Answer(msgspec.Struct, frozen=True):
    """A good answer."""

    data: Matrix
    warnings: list[str] = []


class Failure(msgspec.Struct, frozen=True, rename="camel"):
    """An answer that tells of an error."""

    error: str
    error_type: str = ""


class Prometheus:
    """Asks one query at a time. `warned` gets what Prometheus warns of."""

    def __init__(
        self,
        url: str,
        access: Access,
        timeout_seconds: int,
        warned: Callable[[str], object] = lambda _: None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._url = checked_url(url)
        self._timeout_seconds, self._warned = timeout_seconds, warned
        self._http = httpx2.Client(
            headers={"User-Agent": "itan-pull"},
            auth=Credentials(access),
            verify=access.verification(),
            timeout=timeout_seconds + SPARE_SECONDS,
            trust_env=httpx2.URL(self._url).host not in LOOPBACK,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def over(self, query: str, first: int, last: int, step: int) -> list[Series]:
        """Evaluate a query at each step from first to last, both in epoch seconds.

        Raises Temporary, TooMuch, Unanswerable or Permanent.
        """
        form = {"query": query, "start": str(first), "end": str(last), "step": str(step)}
        status, headers, body = self._post(form | {"timeout": f"{self._timeout_seconds}s"}, is_single=first == last)
        if status == 200:
            return self._read(body)
        raise failure(self._url, status, body, retry_after(headers), is_single=first == last)

    def _post(self, form: dict[str, str], *, is_single: bool) -> tuple[int, httpx2.Headers, bytes]:
        try:
            with self._http.stream("POST", f"{self._url}/api/v1/query_range", data=form) as answer:
                return answer.status_code, answer.headers, b"".join(bounded(answer.iter_bytes()))
        except httpx2.ReadTimeout:
            reason = f"no answer from {self._url} in {self._timeout_seconds + SPARE_SECONDS} s"
            raise (Temporary(reason) if is_single else TooMuch(reason)) from None
        except httpx2.DecodingError as error:
            raise Temporary(f"{self._url} sent an answer that cannot be decoded: {error}") from None
        except httpx2.TransportError as error:
            reason = f"no answer from {self._url}: {error or type(error).__name__}"
            raise (Permanent(reason) if is_untrusted(error) else Temporary(reason)) from None

    def _read(self, body: bytes) -> list[Series]:
        try:
            found = _ANSWER.decode(body)
        except msgspec.MsgspecError as error:
            excerpt = body[:EXCERPT].decode(errors="replace")
            raise Permanent(f"{self._url} does not answer like a Prometheus: {error}: {excerpt!r}") from None
        for warning in found.warnings:
            self._warned(f"Prometheus warns: {warning}")
        return found.data.result


def checked_url(url: str) -> str:
    """Give the address without a slash at the end. Raises Permanent."""
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise Permanent(f"--url: {url!r}; must be like http://prometheus:9090: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.host or parts.query or parts.fragment:
        raise Permanent(f"--url: {url!r}; must be like http://prometheus:9090")
    if parts.username or parts.password:
        # not repeated here: it may be a secret
        raise Permanent("--url: must hold no user and no password; basic_auth in the config names them")
    return url.rstrip("/")


def bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pass on the pieces of an answer. Raises TooMuch where it gets too long."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_BYTES:
            raise TooMuch(f"the answer of Prometheus is longer than {MOST_BYTES} bytes")
        yield piece


def failure(url: str, status: int, body: bytes, wait_seconds: float, *, is_single: bool) -> Exception:
    """Say what an answer means that is not good."""
    try:
        said = _FAILURE.decode(body)
    except msgspec.MsgspecError:
        said = Failure(body[:EXCERPT].decode(errors="replace").strip() or "no reason given")
    text = f"{url} answers {status}: {said.error}"
    if said.error_type == "timeout":
        return Temporary(text, wait_seconds) if is_single else TooMuch(text)
    if status in TEMPORARY or status >= 500:
        return Temporary(text, wait_seconds)
    if status == 422 and said.error_type == "execution":
        return TooMuch(text) if "too many samples" in said.error else Unanswerable(text)
    return Permanent(text)


def retry_after(headers: httpx2.Headers) -> float:
    """Give the seconds of Retry-After; 0 if there are none."""
    text: Any = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def is_untrusted(error: BaseException | None) -> bool:
    """Tell whether a certificate was the reason."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


_ANSWER: Final = msgspec.json.Decoder(Answer)
_FAILURE: Final = msgspec.json.Decoder(Failure)
