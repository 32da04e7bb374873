"""Sends commands to Redis in pipelines: waiting commands share one, and no caller can disturb the connection."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from redis.exceptions import NoScriptError

from app.storage.redis.errors import wrap_error
from app.storage.redis.scripts import Script
from app.storage.redis.servers import Words

Exchange = Callable[[Sequence[Words], Sequence[Words]], Awaitable[list[Any]]]


class Command(NamedTuple):
    """The words to send, the words with the whole script if the server lacks it, and the future of the answer."""

    words: Words
    in_full: Words
    answer: "asyncio.Future[Any]"


class Pipeline:
    """Runs up to `lanes` pipelines at a time; commands that find all of them busy wait and share the next.

    `waits` are the commands that wait until a pipeline's writes are kept as promised.
    """

    def __init__(self, exchange: Exchange, lanes: int, group_limit: int) -> None:
        self._exchange_with, self._lanes, self._group_limit = exchange, lanes, group_limit
        self.waits: list[Words] = []
        self._waiting: deque[Command] = deque()
        self._senders: set[asyncio.Task[None]] = set()

    def start(self, script: Script, keys: tuple[str, ...], *arguments: Any) -> "asyncio.Future[Any]":
        """Run a script by its digest, or by its text if the server lacks it."""
        rest = (len(keys), *keys, *arguments)
        return self._enqueue(("EVALSHA", script.digest, *rest), ("EVAL", script.text, *rest))

    async def send(self, *words: Any) -> Any:
        """Send one plain command."""
        return await self._enqueue(words, words)

    async def close(self) -> None:
        """Wait for the answers that are still to come."""
        while self._senders:
            await asyncio.wait(self._senders)

    def _enqueue(self, words: Words, in_full: Words) -> "asyncio.Future[Any]":
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(Command(words, in_full, answer))
        if len(self._senders) < self._lanes:
            self._senders.add(asyncio.create_task(self._drain()))
        return answer

    async def _drain(self) -> None:
        while group := self._take_group():
            try:
                answers = await self._exchange(group)
            except Exception as error:
                answers = [error] * len(group)
            for command, answer in zip(group, answers, strict=True):
                _resolve(command.answer, answer)
        # Not in a callback of the task: a command that came in between would wait for a sender that has ended.
        self._senders.remove(asyncio.current_task())  # type: ignore[arg-type]

    def _take_group(self) -> list[Command]:
        group: list[Command] = []
        while self._waiting and len(group) < self._group_limit:
            command = self._waiting.popleft()
            if not command.answer.cancelled():
                group.append(command)
        return group

    async def _exchange(self, group: list[Command]) -> list[Any]:
        answers = await self._exchange_with([command.words for command in group], self.waits)
        unknown = [place for place, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:  # the others ran: send only these again
            again = await self._exchange_with([group[place].in_full for place in unknown], self.waits)
            for place, answer in zip(unknown, again, strict=True):
                answers[place] = answer
        return answers


def _resolve(future: "asyncio.Future[Any]", answer: Any) -> None:
    if future.done():  # cancelled meanwhile
        return
    if isinstance(answer, Exception):
        future.set_exception(wrap_error(answer))
    else:
        future.set_result(answer)
