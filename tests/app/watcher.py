"""Somebody who watches a stream of a service in this process."""

import asyncio

from tests.app.harness import Service


class Watcher:
    """One request for the events of a stream, as the server hands it to the app."""

    def __init__(self, service: Service, stream: str = "s", key: str = "") -> None:
        headers = [(b"x-api-key", key.encode())] if key else []
        path = f"/streams/{stream}/events"
        self._scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": headers}
        self._scope |= {"query_string": b"", "asgi": {"spec_version": "2.3"}, "server": ("localhost", 80)}
        self._gone = asyncio.Event()
        self._answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(service.app(self._scope, self._receive, self._send))

    async def _receive(self) -> dict[str, str]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict) -> None:
        if message["type"] == "http.response.start":
            self._answered.set_result(message["status"])

    @property
    def is_answered(self) -> bool:
        return self._answered.done()

    async def status(self) -> int:
        """Wait for the answer to begin."""
        async with asyncio.timeout(30):
            return await self._answered

    async def ended(self) -> None:
        """Wait for the end of the answer."""
        async with asyncio.timeout(30):
            await self.task

    async def leave(self) -> None:
        """Disconnect."""
        self._gone.set()
        await self.ended()

    async def cut(self) -> None:
        """Cancel the request, as the server does at its end."""
        self.task.cancel()
        await asyncio.wait([self.task])
