"""Sends commands to Redis in pipelines: those that wait go out together, and no caller can disturb the connection."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as DisconnectedError

from app.storage.base import Cause, StoreCorrupt, StoreError, StoreUnavailable
from app.storage.redis_servers import Words

# What a server answers while it cannot serve for now, by the first word.
PASSING_ERRORS = frozenset(
    (
        "ASK",
        "BUSY",
        "CLUSTERDOWN",
        "LOADING",
        "MASTERDOWN",
        "MISCONF",
        "MOVED",
        "NOAUTH",
        "NOPERM",
        "NOREPLICAS",
        "OOM",
        "READONLY",
        "TRYAGAIN",
        "UNKILLABLE",
    )
)
# Why it takes no writes, where the word says it.
CAUSES = {"OOM": Cause.FULL, "READONLY": Cause.READ_ONLY, "MISCONF": Cause.FAILED}
Exchange = Callable[[Sequence[Words], Sequence[Words]], Awaitable[list[Any]]]
LUA = Path(__file__).parent / "lua"


class Script(NamedTuple):
    """A Lua script, known to the server by its digest."""

    text: bytes
    digest: str


class Command(NamedTuple):
    """What to send, what to send if the server does not know the script, and who waits for the answer."""

    words: Words
    in_full: Words
    answer: "asyncio.Future[Any]"


def read_script(name: str) -> Script:
    """Read lua/<name>.lua."""
    return script_of((LUA / f"{name}.lua").read_bytes())


def script_of(text: bytes) -> Script:
    """Give a script its digest."""
    return Script(text, sha1(text, usedforsecurity=False).hexdigest())


class RedisPipe:
    """Up to `lanes` pipelines at a time; a command that finds all of them under way waits and shares the next.

    `waits` are the commands that wait for a pipeline's writes to be kept as well as was promised.
    """

    def __init__(self, exchange: Exchange, lanes: int, group_limit: int) -> None:
        self._exchange_with, self._lanes, self._group_limit = exchange, lanes, group_limit
        self.waits: list[Words] = []
        self._waiting: deque[Command] = deque()
        self._senders: set[asyncio.Task[None]] = set()

    def start(self, script: Script, keys: tuple[str, ...], *arguments: Any) -> "asyncio.Future[Any]":
        """Run a script by its digest, or by its text if the server has forgotten it."""
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
        # Not in a callback of the task: a command that comes in between would wait for a sender that has ended.
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
        if unknown:  # the others ran: only these go again
            again = await self._exchange_with([group[place].in_full for place in unknown], self.waits)
            for place, answer in zip(unknown, again, strict=True):
                answers[place] = answer
        return answers


def wrap_error(error: Exception) -> Exception:
    """Turn the driver's errors into the store's."""
    if not isinstance(error, (RedisError, RedisClusterException, OSError, TimeoutError)):
        return error
    if not isinstance(error, ResponseError) or isinstance(error, DisconnectedError):
        return StoreUnavailable(f"Redis: {error or type(error).__name__}")
    code = error.status_code or str(error).partition(" ")[0]
    if code in PASSING_ERRORS:
        return StoreUnavailable(f"Redis: {code}: {error}", CAUSES.get(code, Cause.UNREACHABLE))
    if code == "WRONGTYPE":
        return StoreCorrupt(None, f"Redis: {error}")
    return StoreError(f"Redis: {error}")


def wrap_refusal(error: Exception) -> Exception:
    """Turn the driver's errors at the start into the store's: keys and kinds of servers do not mend themselves."""
    cause: BaseException | None = error
    while cause is not None:  # a Cluster's client wraps what its nodes said
        if isinstance(cause, (AuthenticationError, AuthorizationError, NoPermissionError)):
            return StoreError(f"Redis refuses the user or the password: {cause}")
        if isinstance(cause, ResponseError) and "cluster support disabled" in str(cause):
            return StoreError("Redis: this is no node of a Cluster: the URL of a single server is redis://host:port")
        cause = cause.__cause__ or cause.__context__
    return wrap_error(error)


def _resolve(future: "asyncio.Future[Any]", answer: Any) -> None:
    if future.done():  # cancelled meanwhile
        return
    if isinstance(answer, Exception):
        future.set_exception(wrap_error(answer))
    else:
        future.set_result(answer)
