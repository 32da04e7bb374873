"""Two workers on one Redis, and clients that go to either at random: each stream is as if one had served it."""

import asyncio
import os
import random
from pathlib import Path

import httpx2

from tests.integration.process import ServiceProcess
from tests.integration.traffic import Sender, end, prove, question, wait_a_moment, wait_for_answers
from tests.servers import RedisServer

PAUSES = int(os.environ.get("ITAN_TEST_PAUSES", "2"))
STREAMS = [f"s{number}" for number in range(int(os.environ.get("ITAN_TEST_STREAMS", "4")))]
LEASE_SECONDS = 1.0
SETTINGS = {
    "lease_seconds": LEASE_SECONDS,
    "handover_seconds": 0,
    "snapshot_every_seconds": 0.3,
}
MAY_PASS = ("stream_elsewhere", "stream_moved", "stopping")


async def post_late(url: str) -> httpx2.Response:
    """Send what the worker finds when it wakes: it does not know yet that others have gone on."""
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        return await http.post(f"{url}/observe?stream={STREAMS[0]}", json={"samples": [[99.0, 99.0, 99.0]]})


def folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


async def test_one_that_is_paused_past_its_leases_and_wakes_changes_nothing(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    seed = int(os.environ.get("ITAN_TEST_SEED", random.randrange(10**6)))
    print("ITAN_TEST_SEED", seed)
    with (
        ServiceProcess(redis_server.url, folder(tmp_path, "a"), **SETTINGS) as a,
        ServiceProcess(redis_server.url, folder(tmp_path, "b"), **SETTINGS) as b,
    ):
        urls = [a.url, b.url]
        senders = [
            Sender(f"{stream}-{n}", stream, seed, urls, *MAY_PASS, patience=0.4) for stream in STREAMS for n in range(2)
        ]
        tasks = [asyncio.create_task(sender.send()) for sender in senders]
        for number in range(PAUSES):
            sleeper = (a, b)[number % 2]
            await wait_for_answers(tasks, senders, 2)
            sleeper.freeze()
            late = asyncio.create_task(post_late(sleeper.url))
            await wait_a_moment(tasks, 1.5 * LEASE_SECONDS)
            await wait_for_answers(tasks, senders, 2)  # the other has taken everything over
            sleeper.thaw()
            assert (await late).json()["code"] in MAY_PASS
        await wait_for_answers(tasks, senders, 2)
        # its streams are the other's at once; in a thread, so that requests that are half sent go on
        assert await asyncio.to_thread(a.stop) == 0
        for sender in senders:
            sender.urls = [b.url]
        await wait_for_answers(tasks, senders, 2)
        await end(tasks, senders)
        await prove(redis_server.url, await question([b.url], senders), senders)
        assert "stream_elsewhere" in set.union(*(sender.refusals for sender in senders))
        assert "Traceback" not in a.said() + b.said()
    print("answers", [sender.answers for sender in senders], "repeats", [sender.repeats for sender in senders])
