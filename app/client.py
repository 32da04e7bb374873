"""A thin typed client of the HTTP interface, shared by the command line and by users."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Union
from urllib.parse import quote, urlsplit

import httpx2
import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_URL = "http://127.0.0.1:8000"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}

Value = float | None
Sample = Sequence[Value] | Mapping[str, Value]
Samples = Union[Sequence[Sample], "NDArray[np.float64]"]
Label = Mapping[str, Any]


class Explanation(msgspec.Struct, frozen=True):
    """Why a sample was flagged: the nats that each feature adds, its expected value, and the nearest node.

    labels_contribution is in nats too, of what labels added; nearest_anomaly is the seq of a sample labelled anomalous.
    """

    contributions: dict[str, float | None]
    expected: dict[str, float]
    node: int
    path: list[int]
    labels_contribution: float
    nearest_anomaly: int | None


class Observed(msgspec.Struct, frozen=True):
    """Answer to a batch of samples: columns with one entry for each sample, None if a value is unknown.

    incident and event are there if the samples were learned: the seq that opened the incident, and what happened to it.
    explanation has entries for the flagged samples, if it was requested.
    """

    score: list[float | None]
    threshold: list[float | None]
    is_anomaly: list[bool]
    ready: list[bool]
    severity: list[float | None]
    samples_needed: int = 0
    stream: str = ""
    seq: list[int] | None = None
    ids: list[str | None] | None = None
    incident: list[int | None] | None = None
    event: list[str | None] | None = None
    explanation: list[Explanation | None] | None = None


class Feedback(msgspec.Struct, frozen=True):
    """Answer to labels: columns with one entry for each label, and the state of the stream after them."""

    seq: list[int | None]
    id: list[str | None]
    outcome: list[str]
    retracted: list[bool | None]
    outcomes: dict[str, int]
    accepted: list[int]
    threshold_before: float | None
    threshold_after: float | None
    oldest_seq: int
    labels: int
    true_alarms: int
    false_alarms: int
    misses: int
    true_passes: int
    cost: float
    best_fixed_cost: float
    best_fixed_threshold: float | None
    regret: float
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    recall: float | None
    recall_low: float | None
    recall_high: float | None
    stream: str = ""
    dry_run: bool = False


class Band(msgspec.Struct, frozen=True):
    """Quantiles of a feature over time: values[i][j] is at level[i] and time[j]; seq tells at which samples, if any."""

    stream: str
    as_of_seq: int
    feature: str
    level: list[float]
    time: list[float]
    values: list[list[float]]
    seq: list[int] | None = None


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


class ServiceUnreachable(ConnectionError):
    """No answer came, so the outcome of the request is unknown."""


class Client:
    """Call one itan service; use it as a context manager or close it.

    With `retry_seconds` it repeats a request after a 429 or 503 with Retry-After, for at most this long; after a 503
    only if the repeat cannot count twice: reads, labels, and samples with ids.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        key: str | None = None,
        *,
        timeout_seconds: float = 30.0,
        retry_seconds: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._retry_seconds = retry_seconds
        self._sleep = sleep
        self._http = httpx2.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=timeout_seconds,
            # a proxy named in the environment cannot reach this machine's own loopback
            trust_env=urlsplit(url).hostname not in LOOPBACK,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def observe(
        self,
        stream: str,
        samples: Samples,
        ids: Sequence[str | None] | None = None,
        timestamps: Sequence[float | str | None] | None = None,
        *,
        learn: bool = True,
        explain: bool = False,
        calendar: Sequence[str | float] | None = None,
        timezone: str = "UTC",
    ) -> Observed:
        """Post samples (None or NaN = missing) and get their scores and decisions; `learn=False` only scores them.

        With `explain`, flagged samples come with what each feature adds to the score, and the value expected instead.
        A stream that the samples create gets the periods of `calendar`, "day", "week" or seconds; a stream with a
        calendar needs timestamps, None where the time is not known.

        An infinity raises ValueError: JSON has none, and it would look like a missing value.
        """
        body = {"samples": _finite(samples), "ids": ids, "timestamps": timestamps}
        params = {"stream": stream, "learn": _flag(learn), "explain": _flag(explain)}
        if calendar is not None:
            params |= {"calendar": ",".join(map(str, calendar)), "timezone": timezone}
        repeatable = (ids is not None and all(ids)) or not learn
        answer = self._send("POST", "/observe", params, _without_none(body), repeatable=repeatable)
        return msgspec.json.decode(answer.content, type=Observed)

    def feedback(self, stream: str, labels: Sequence[Label], *, dry_run: bool = False) -> Feedback:
        """Send labels, each {"seq" or "id": which sample, "anomaly": True, False, or None to withdraw}."""
        params = {"stream": stream, "dry_run": _flag(dry_run)}
        answer = self._send("POST", "/feedback", params, {"labels": labels})
        return msgspec.json.decode(answer.content, type=Feedback)

    def density(
        self, stream: str, points: Samples, timestamps: Sequence[float | str | None] | None = None
    ) -> list[float]:
        """Ask for the log density (nats, in the units of the samples) at points; nothing is learned."""
        body = {"points": _finite(points), "timestamps": timestamps}
        document = self._document("POST", "/density", {"stream": stream}, _without_none(body))
        return msgspec.convert(document["log_density"], list[float])

    def model(self, stream: str) -> dict[str, Any]:
        """Describe the learned density: nodes, hyperplanes, weights, means, covariances."""
        return self._document("GET", "/density", {"stream": stream})

    def band(
        self,
        stream: str,
        feature: str,
        begin: float,
        end: float,
        levels: Sequence[float] = (0.05, 0.5, 0.95),
        points: int = 289,
    ) -> Band:
        """Get the quantiles of a feature from one time to another, in epoch seconds, given calendar and context."""
        times = {"from": repr(begin), "to": repr(end), "points": str(points)}
        params = {"feature": feature, "levels": ",".join(map(repr, levels)), **times}
        return msgspec.convert(self._document("GET", _path(stream) + "/band", params), Band)

    def create(self, stream: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """Create a stream; if it exists with the same config nothing happens, with another config it is an error."""
        return self._document("PUT", _path(stream), body=config)

    def get(self, stream: str) -> dict[str, Any]:
        """Get a stream's config and state."""
        return self._document("GET", _path(stream))

    def delete(self, stream: str, *, silent_seconds: int = 0) -> None:
        """Delete a stream and all that it has learned; with silent_seconds only if it has been silent for so long."""
        self._send("DELETE", _path(stream), {"silent_seconds": str(silent_seconds)} if silent_seconds else None)

    def reset(self, stream: str) -> dict[str, Any]:
        """Forget what a stream has learned; its config stays and its seq continues."""
        return self._document("POST", _path(stream) + "/reset", repeatable=False)

    def export(self, stream: str) -> bytes:
        """Get a stream's whole state as a file that `import_` takes."""
        return self._send("GET", _path(stream) + "/export").content

    def import_(self, stream: str, state: bytes) -> dict[str, Any]:
        """Replace a stream's state with an exported one."""
        return self._document("PUT", _path(stream) + "/import", body=state)

    def check(self, stream: str) -> dict[str, Any]:
        """Replay everything stored of a stream, and get what is wrong with it."""
        return self._document("GET", _path(stream) + "/check")

    def repair(self, stream: str, *, lossy: bool = False) -> dict[str, Any]:
        """Repair a damaged stream; `lossy` allows that samples, or the log with its ids, are lost."""
        return self._document("POST", _path(stream) + "/repair", {"lossy": _flag(lossy)}, repeatable=False)

    def accept(self, stream: str) -> dict[str, Any]:
        """Accept what a replay or a repair has changed."""
        return self._document("POST", _path(stream) + "/accept")

    def streams(self, page_size: int = 100, *, silent_seconds: int = 0) -> Iterator[str]:
        """Iterate over the ids of all streams in order, page by page, or of those that have been silent for so long."""
        after: str | None = ""
        silent = {"silent_seconds": str(silent_seconds)} if silent_seconds else {}
        while after is not None:
            page = self._document("GET", "/streams", {"limit": str(page_size), "after": after, **silent})
            yield from (entry["stream"] for entry in page["streams"])
            after = page.get("next")

    def _document(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: object = None,
        *,
        repeatable: bool = True,
    ) -> dict[str, Any]:
        answer = self._send(method, path, params, body, repeatable=repeatable)
        return msgspec.json.decode(answer.content, type=dict[str, Any]) if answer.content else {}

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: object = None,
        *,
        repeatable: bool = True,
    ) -> httpx2.Response:
        waited = 0.0
        while True:
            try:
                return self._send_once(method, path, params, body)
            except ApiError as error:
                pause = error.retry_after_seconds
                # a 429 has changed nothing
                may_repeat = error.status == 429 or (error.status == 503 and repeatable)
                if not may_repeat or pause is None or waited + pause > self._retry_seconds:
                    raise
            self._sleep(pause)
            waited += pause

    def _send_once(self, method: str, path: str, params: Mapping[str, str] | None, body: object) -> httpx2.Response:
        content, headers = _encode(body)
        try:
            answer = self._http.request(method, path, params=params, content=content, headers=headers)
        except httpx2.TransportError as error:
            raise ServiceUnreachable(
                f"no answer from {self._http.base_url}: {error or type(error).__name__}"
            ) from error
        if answer.is_success:
            return answer
        raise ApiError(answer.status_code, _problem(answer), _retry_after(answer))


def _encode(body: object) -> tuple[bytes | None, dict[str, str]]:
    if body is None:
        return None, {}
    if isinstance(body, bytes):
        return body, {"Content-Type": "application/octet-stream"}
    return msgspec.json.encode(body), {"Content-Type": "application/json"}


def _problem(answer: httpx2.Response) -> dict[str, Any]:
    try:
        return msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        # a proxy in between answers in its own words
        return {"code": "not_a_problem_document", "detail": answer.text[:200].strip() or answer.reason_phrase}


def _retry_after(answer: httpx2.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _finite(samples: Samples) -> Sequence[Sample]:
    samples = samples if isinstance(samples, Sequence) else samples.tolist()
    for row, sample in enumerate(samples):
        values = sample.values() if isinstance(sample, Mapping) else sample
        if any(isinstance(value, float) and math.isinf(value) for value in values):
            raise ValueError(f"row {row} holds an infinity, which JSON does not have")
    return samples


def _path(stream: str) -> str:
    return "/streams/" + quote(stream, safe="")


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
