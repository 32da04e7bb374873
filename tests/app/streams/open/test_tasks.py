import asyncio

import pytest

from app.streams.errors import Stopping
from app.streams.open.tasks import Tasks


async def test_work_ends_though_its_caller_is_cancelled():
    tasks, held, done = Tasks(), asyncio.Event(), []

    async def work() -> None:
        await held.wait()
        done.append(True)

    caller = asyncio.create_task(tasks.shielded(work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert len(tasks) == 1
    held.set()
    await tasks.finish()
    assert (done, len(tasks)) == ([True], 0)


async def test_the_caller_gets_the_result_or_the_error():
    tasks = Tasks()
    assert await tasks.shielded(asyncio.sleep(0, "result")) == "result"

    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await tasks.shielded(fail())


async def test_no_work_begins_after_the_stop():
    tasks, begun = Tasks(), []

    async def work() -> None:
        begun.append(True)

    await tasks.stop()
    with pytest.raises(Stopping):
        await tasks.shielded(work())
    assert not begun


async def test_what_is_cancelled_ends():
    tasks = Tasks()
    caller = asyncio.create_task(tasks.shielded(asyncio.Event().wait()))
    await asyncio.sleep(0)
    tasks.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not tasks
