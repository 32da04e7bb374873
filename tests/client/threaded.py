"""The service in this process, for blocking clients."""

import asyncio

import httpx2

from tests.app.harness import Service


class Threaded(httpx2.BaseTransport):
    """Hands the requests of a thread to a service that runs in a loop."""

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = httpx2.ASGITransport(service.app), loop

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop).result(30)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._transport.handle_async_request(request)
        return httpx2.Response(answer.status_code, headers=answer.headers, content=await answer.aread())
