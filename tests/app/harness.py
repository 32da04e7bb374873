"""A service in this process, for tests: real app, real store, a clock and a store that can be disturbed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

import httpx2
import numpy as np

from app.main import create_app
from app.settings import Settings
from app.storage.memory import MemoryStore
from app.streams.open.clock import Clock
from tests.app.problems import check_shape

NOW = 1_800_000_000.0


class FakeClock(Clock):
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.wall, self.ticks = NOW, 0.0
        super().__init__()

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.ticks += seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


class DisturbedStore:
    """Another store behind a hook that is awaited before and after each verb; it may wait, or raise."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.is_exclusive, self.retries, self.windows = store.is_exclusive, store.retries, store.windows
        self.write_refusals = store.write_refusals
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        self.after: dict[str, Callable[[], Awaitable[None]]] = {}

    def __getattr__(self, verb: str) -> Any:
        async def call(*given: Any, **more: Any) -> Any:
            if hook := self.before.get(verb, self.before.get("*")):
                await hook()
            answer = await getattr(self.store, verb)(*given, **more)
            if hook := self.after.get(verb):
                await hook()
            return answer

        return call


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop run until something is so that nothing announces; pytest's timeout ends it."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0)


@asynccontextmanager
async def turns_of_others() -> AsyncIterator[Callable[[], int]]:
    """Count the turns that another task has meanwhile."""
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(take_turns())
    yield lambda: turns
    task.cancel()


def raising(error: Exception) -> Callable[[], Awaitable[None]]:
    """Make a hook that fails."""

    async def fail() -> None:
        raise error

    return fail


class Service:
    """One run of the app, with a client."""

    def __init__(self, store: Any = None, clock: Clock | None = None, key: str | None = None, **settings: Any) -> None:
        self.store = MemoryStore() if store is None else store
        self.clock = clock or FakeClock()
        # of one name, so that one run takes over from another at once
        settings = {"worker": "the same"} | settings
        self.app = create_app(Settings(**settings), store=self.store, clock=self.clock)
        self.registry = self.app.state.service.registry
        self.snapshotter = self.app.state.snapshotter
        transport = httpx2.ASGITransport(self.app, raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.app.router.lifespan_context(self.app))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()
        await self._stack.aclose()

    async def crash(self) -> None:
        """End without a word: no snapshot is stored."""
        await self.http.aclose()
        await self.snapshotter.stop()
        self.registry.sessions.clear()
        await self.store.close()
        # kept, so that the lifespan does not run on to its orderly end when it is collected
        self._abandoned = self._stack.pop_all()

    async def observe(self, samples: Any, stream: str = "s", **more: Any) -> dict[str, Any]:
        """Post samples that are to be accepted."""
        samples = samples.tolist() if isinstance(samples, np.ndarray) else samples
        return await self.accepted("POST", f"/observe?stream={stream}", json={"samples": samples, **more})

    async def feedback(self, *labels: dict[str, Any], stream: str = "s", query: str = "") -> dict[str, Any]:
        """Post labels that are to be accepted."""
        return await self.accepted("POST", f"/feedback?stream={stream}{query}", json={"labels": labels})

    async def accepted(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        """Send a request that is to be accepted."""
        answer = await self.http.request(method, path, **given)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    async def refused(self, method: str, path: str, status: int, code: str, **given: Any) -> dict[str, Any]:
        """Send a request that is to be refused, as a problem of that status and code."""
        answer = await self.http.request(method, path, **given)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        problem = answer.json()
        check_shape(problem)
        assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code), problem
        return problem

    async def export(self, stream: str = "s") -> bytes:
        """Get a stream's whole state."""
        answer = await self.http.get(f"/streams/{stream}/export")
        assert answer.status_code == 200, answer.text
        return answer.content

    async def metric(self, name: str, **labels: str) -> float:
        """Read one number of /metrics."""
        inner = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
        series = f"{name}{{{inner}}}" if labels else name
        lines = (await self.http.get("/metrics")).text.splitlines()
        found = [line for line in lines if line.startswith(series + " ")]
        assert found, series
        return float(found[0].rsplit(" ", 1)[1])


def blobs(n: int, m: int = 2, seed: int = 0) -> np.ndarray:
    """Make samples: two clusters and a few outliers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) + 6.0 * rng.integers(0, 2, size=(n, 1))
    X[rng.random(n) < 0.03] += 20.0
    return X
