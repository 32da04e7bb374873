"""A Prometheus that answers from tables, and a pull from it into a service in this process."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import parse_qs

import httpx2

from app.pull.config import PullConfig, read_config
from app.pull.run import Pull
from itan_client import Client
from tests.app.harness import NOW, Service
from tests.client.threaded import Threaded

STEP = 30
NEWEST = int(NOW) - STEP
"""The newest step that is due, with the delay as it is by default."""
URL = "http://prometheus:9090"
QUERIES = "stream: instance\nstep: 30s\nbackfill: 10m\nqueries: {cpu: CPU, latency: LATENCY}\n"
Values = Mapping[int, Any]


class FakePrometheus:
    """Answers range queries; `failures` are given first, one for each request. `asked` are the forms that came."""

    def __init__(self) -> None:
        self.series: list[tuple[str, Mapping[str, str], Values]] = []
        self.failures: list[httpx2.Response | Exception] = []
        self.asked: list[dict[str, str]] = []
        self.headers: list[httpx2.Headers] = []
        self.limit: Callable[[dict[str, str]], httpx2.Response | None] = lambda form: None

    def add(self, query: str, metric: Mapping[str, str] | str, values: Values) -> None:
        """Let a query give a series; a text alone is its instance."""
        self.series.append((query, {"instance": metric} if isinstance(metric, str) else metric, values))

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The first and last step of each request."""
        return [(int(form["start"]), int(form["end"])) for form in self.asked]

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        assert (request.method, request.url.path) == ("POST", "/api/v1/query_range")
        form = {name: value for name, (value,) in parse_qs(request.content.decode()).items()}
        self.asked.append(form)
        self.headers.append(request.headers)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        first, last, step = (int(form[name]) for name in ("start", "end", "step"))
        if (last - first) // step > 11_000:
            return refusal(400, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries")
        return self.limit(form) or matrix(self._found(form["query"], first, last, step))

    def _found(self, query: str, first: int, last: int, step: int) -> list[dict[str, Any]]:
        found = []
        for text, metric, values in self.series:
            given = [[time, str(values[time])] for time in range(first, last + 1, step) if time in values]
            if text == query and given:
                found.append({"metric": dict(metric), "values": given})
        return found


def matrix(result: Sequence[Mapping[str, Any]], **more: Any) -> httpx2.Response:
    return httpx2.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": result}, **more})


def refusal(status: int, kind: str, error: str, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json={"status": "error", "errorType": kind, "error": error}, headers=headers)


class World:
    """A Prometheus, a service, and the time, which moves while a pull waits; the pull is asked to end at `ends`."""

    def __init__(self, service: Service) -> None:
        self.service, self.prometheus = service, FakePrometheus()
        self.ends = math.inf
        self.waits: list[float] = []
        self.summary = ""

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.service.clock.advance(seconds)
        return self.service.clock.now() > self.ends

    async def pull(
        self, text: str = QUERIES, *, once: bool = True, limit: float | None = 300.0, key: str | None = None
    ) -> None:
        """Run one pull to its end."""
        await self._run(read_config(text), lambda run: run.run(once=once), limit, key)

    async def look(self, text: str = QUERIES) -> list[tuple[int, str, dict[str, float | None]]]:
        """See what a pull would send of the newest step."""
        return await self._run(read_config(text), lambda run: list(run.look()), None, None)

    async def _run(self, config: PullConfig, act: Callable[[Pull], Any], limit: float | None, key: str | None) -> Any:
        loop = asyncio.get_running_loop()

        def work() -> Any:
            transport = httpx2.MockTransport(self.prometheus.handle)
            clock = self.service.clock.now
            with (
                Client("http://localhost", key, retry_seconds=0, transport=Threaded(self.service, loop)) as client,
                Pull.connected(
                    config, URL, client, self.wait, limit, clock=clock, transport=transport, lot=Random(0)
                ) as run,
            ):
                try:
                    return act(run)
                finally:
                    self.summary = run.summary()

        return await asyncio.to_thread(work)

    async def samples(self, stream: str) -> dict[int, list[float | None]]:
        """Give all samples of a stream by their times."""
        history = await self.service.accepted("GET", f"/streams/{stream}/history?values=true&from=1&points=10000")
        return dict(zip(map(int, history["time"]), history["values"], strict=True))


def steps(n: int, last: int = NEWEST) -> list[int]:
    """Give the last n steps."""
    return [last - STEP * place for place in range(n - 1, -1, -1)]


def wave(times: Sequence[int], base: float = 0.0) -> dict[int, float]:
    """Give values that differ from step to step."""
    return {time: base + time // STEP % 17 / 10 for time in times}
