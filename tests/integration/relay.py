"""Stands between a service and its Redis, and can hold back what Redis answers."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self

from app.storage.redis.scripts import read_script


class Relay:
    """Passes bytes on both ways; `on_append` is called after Redis has taken an append, before the service knows."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._digest = read_script("append").digest.encode()
        self.on_append: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # closed connections go with the next turn of the loop

    async def _accept(self, service: asyncio.StreamReader, to_service: asyncio.StreamWriter) -> None:
        redis, to_redis = await asyncio.open_connection("127.0.0.1", self._port)
        is_append = asyncio.Event()

        async def up() -> None:
            while data := await service.read(2**16):
                if self._digest in data:
                    is_append.set()
                to_redis.write(data)

        async def down() -> None:
            while data := await redis.read(2**16):
                if is_append.is_set():
                    is_append.clear()
                    self.on_append()
                to_service.write(data)

        for direction, end in ((up(), to_redis), (down(), to_service)):
            task = asyncio.create_task(self._run(direction, end))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, direction: Coroutine[Any, Any, None], end: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                await direction
        finally:
            end.close()
