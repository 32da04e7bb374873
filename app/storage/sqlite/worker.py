"""A thread that owns an SQLite connection and runs the waiting operations as one transaction."""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from app.storage.errors import Cause, StoreCorrupt, StoreError, StoreUnavailable

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]

# One slow operation must not delay the answers of thousands.
GROUP_LIMIT = 256
# A hanging disk blocks the thread: an operation that has waited this long fails as unavailable.
PATIENCE_SECONDS = 5.0
CAUSES = {
    sqlite3.SQLITE_FULL: Cause.FULL,
    sqlite3.SQLITE_READONLY: Cause.READ_ONLY,
    sqlite3.SQLITE_BUSY: Cause.LOCKED,
    sqlite3.SQLITE_LOCKED: Cause.LOCKED,
}


class Job(NamedTuple):
    """An operation and the future that waits for its outcome."""

    operation: Operation[Any]
    future: "asyncio.Future[Any]"


class Watch(Protocol):
    """What a worker does around its transactions, in its thread."""

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise an error if nothing may be written, or if what was just written may not be acknowledged."""

    def checkpoint_if_due(self, connection: sqlite3.Connection) -> None:
        """Do a checkpoint if one is due, after the answers were given."""

    def end(self, connection: sqlite3.Connection) -> None:
        """Prepare the close of the connection."""


class SqliteWorker:
    """Runs operations in one thread: those that wait share a transaction, and one that fails is undone alone."""

    watch: Watch | None = None

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], begin: str, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._connect, self.begin = connect, begin
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._coming: list[Job] = []
        self._patience = Patience(patience_seconds)
        self._ended: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Open the connection in the thread that will use it."""
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()
        threading.Thread(target=self._work, args=(loop, opened, ended), daemon=True).start()
        await opened
        self._ended = ended

    async def stop(self) -> bool:
        """Finish the waiting operations, then close the connection; False if its thread hangs and is left behind."""
        if self._ended is None:
            return True
        ended, self._ended = self._ended, None
        self._hand_over()
        self._jobs.put(None)
        await asyncio.wait([ended], timeout=self._patience.seconds)
        return ended.done()

    async def run(self, operation: Operation[T]) -> T:
        """Run one operation; it has taken effect unless this raises."""
        if self._ended is None:
            raise StoreUnavailable("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._patience.watch(future)
        if not self._coming:
            # those that come in this turn of the loop go together: the thread would run the first one alone
            future.get_loop().call_soon(self._hand_over)
        self._coming.append(Job(operation, future))
        return await future

    def _hand_over(self) -> None:
        """Give the thread what has come."""
        coming, self._coming = self._coming, []
        for job in coming:
            self._jobs.put(job)

    def _work(
        self, loop: asyncio.AbstractEventLoop, opened: "asyncio.Future[None]", ended: "asyncio.Future[None]"
    ) -> None:
        try:
            connection = self._connect()
        except Exception as error:
            _tell(loop, [(opened, wrap_error(error))])
            return
        _tell(loop, [(opened, None)])
        while group := self._take_group():
            outcomes = self._run_group(connection, group)
            _tell(loop, [(job.future, outcome) for job, outcome in zip(group, outcomes, strict=True)])
            if self.watch is not None:
                self.watch.checkpoint_if_due(connection)
        if self.watch is not None:
            self.watch.end(connection)
        connection.close()
        _tell(loop, [(ended, None)])

    def _take_group(self) -> list[Job]:
        """Wait for a job and take those behind it; an empty group means the end."""
        group: list[Job] = []
        job = self._jobs.get()
        with suppress(Empty):
            while job is not None:
                group.append(job)
                if len(group) == GROUP_LIMIT:
                    return group
                job = self._jobs.get_nowait()
        if job is None and group:
            self._jobs.put(None)
        return group

    def _run_group(self, connection: sqlite3.Connection, group: list[Job]) -> list[object]:
        try:
            self._check(connection)
            connection.execute(self.begin)
            # a single job needs no savepoint: undoing it undoes the transaction
            attempt = _attempt if len(group) > 1 else _run
            outcomes = [attempt(connection, job) for job in group]
            connection.execute("COMMIT")
            self._check(connection)
        except Exception as error:  # nothing of this group was kept
            _roll_back(connection)
            told = self._explain(connection, error)
            return [told for _ in group]
        return outcomes

    def _explain(self, connection: sqlite3.Connection, error: Exception) -> Exception:
        """Say what happened to the files if SQLite failed because of that; else what SQLite says."""
        if isinstance(error, sqlite3.Error):
            try:
                self._check(connection)
            except StoreUnavailable as fault:
                return fault
            except sqlite3.Error:
                pass
        return wrap_error(error)

    def _check(self, connection: sqlite3.Connection) -> None:
        if self.watch is not None:
            self.watch.check(connection)


class Patience:
    """Fails futures that have waited too long, with one timer for all of them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._waits: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, future: "asyncio.Future[Any]") -> None:
        """Fail a future if it is not done in time."""
        while self._waits and self._waits[0][1].done():
            self._waits.popleft()
        loop = future.get_loop()
        ends = loop.time() + self.seconds
        self._waits.append((ends, future))
        if self._timer is None:
            self._timer = loop.call_at(ends, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        while self._waits:
            ends, future = self._waits[0]
            if not future.done() and ends > (loop := future.get_loop()).time():
                self._timer = loop.call_at(ends, self._give_up)
                return
            self._waits.popleft()
            if not future.done():
                future.set_exception(StoreUnavailable(f"SQLite: no answer from the disk in {self.seconds:g} s"))


def wrap_error(error: Exception) -> Exception:
    """Turn the driver's errors into the store's."""
    match error:
        case sqlite3.OperationalError():  # full, locked, read-only, no such directory, input/output error
            return StoreUnavailable(f"SQLite: {error}", cause_of(error))
        case sqlite3.DatabaseError() if type(error) is sqlite3.DatabaseError:
            return StoreCorrupt(None, f"SQLite: {error}")
        case sqlite3.Error():
            return StoreError(f"SQLite: {error}")
    return error


def cause_of(error: sqlite3.Error) -> Cause:
    """Give the cause by SQLite's error code, whose last byte is the primary code."""
    code = getattr(error, "sqlite_errorcode", 0)  # Python's own errors have none
    return CAUSES.get(code & 0xFF, Cause.FAILED)


def _run(connection: sqlite3.Connection, job: Job) -> object:
    """Run a job unless nobody waits for it any more."""
    return None if job.future.done() else job.operation(connection)


def _attempt(connection: sqlite3.Connection, job: Job) -> object:
    connection.execute("SAVEPOINT job")
    try:
        outcome = _run(connection, job)
    except Exception as error:
        if not connection.in_transaction:  # a full disk can undo the work of the whole group
            raise
        connection.execute("ROLLBACK TO job")
        outcome = wrap_error(error)
    connection.execute("RELEASE job")
    return outcome


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _tell(loop: asyncio.AbstractEventLoop, outcomes: list[tuple["asyncio.Future[Any]", object]]) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nobody waits
        loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: list[tuple["asyncio.Future[Any]", object]]) -> None:
    for future, outcome in outcomes:
        if future.done():  # cancelled meanwhile
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
