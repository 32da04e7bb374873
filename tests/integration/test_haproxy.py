"""Three workers behind HAProxy: when one is killed, only its streams move, soon, and with everything acknowledged."""

import asyncio
import os
import random
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx2

from tests.integration.process import ServiceProcess
from tests.integration.proxy import proxy
from tests.integration.traffic import Sender, end, prove, question, wait_for_answers
from tests.servers import RedisServer

STREAMS = int(os.environ.get("ITAN_TEST_STREAMS", "12"))
LEASE_SECONDS = float(os.environ.get("ITAN_TEST_LEASE_SECONDS", "4"))
MAY_PASS = ("stream_elsewhere", "stream_moved", "stopping")
PROXY_STATUS = {502, 503, 504}


class RoutedSender(Sender):
    """Notes which worker answered, and how long there was no answer."""

    pause_seconds = 0.2
    workers: list[str]
    longest_gap = 0.0
    last = 0.0

    def note(self, answer: httpx2.Response) -> None:
        now = time.monotonic()
        self.longest_gap, self.last = max(self.longest_gap, now - (self.last or now)), now
        self.workers.append(answer.headers["x-itan-worker"])

    async def expect_refusal(self, answer: httpx2.Response) -> None:
        if answer.headers["content-type"].startswith("text/html"):  # the proxy's own: the worker died meanwhile
            assert answer.status_code in PROXY_STATUS
            self.refusals.add(str(answer.status_code))
            await asyncio.sleep(0.02)
        else:
            await super().expect_refusal(answer)

    def begin(self) -> None:
        """Forget what was noted."""
        self.workers, self.refusals, self.longest_gap, self.last = [], set(), 0.0, time.monotonic()


async def expect_one_worker_for_a_sender(address: str) -> None:
    """Send records of many streams: they go by the sender, not in turn."""
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        records = [{"stream": f"fleet-{n}", "sample": [1.0, 2.0]} for n in range(5)]
        answers = [await http.post(f"{address}/ingest", json=records) for _ in range(6)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["x-itan-worker"] for answer in answers}) == 1


async def test_only_the_streams_of_a_killed_worker_move(redis_server: RedisServer, tmp_path: Path) -> None:
    seed = int(os.environ.get("ITAN_TEST_SEED", random.randrange(10**6)))
    print("ITAN_TEST_SEED", seed)
    with ExitStack() as stack:
        services = [
            stack.enter_context(
                ServiceProcess(redis_server.url, tmp_path, lease_seconds=LEASE_SECONDS, snapshot_every_seconds=1.0)
            )
            for _ in range(3)
        ]
        address = stack.enter_context(proxy([service.url for service in services], tmp_path))
        senders = [RoutedSender(f"s{n}", f"s{n}", seed, [address], *MAY_PASS) for n in range(STREAMS)]
        await expect_one_worker_for_a_sender(address)
        before, after = await live_through_a_death(services, senders)
        witnesses = await question([address], list(senders))
        assert "Traceback" not in services[0].said()
    await prove(redis_server.url, witnesses, list(senders))
    assert all(before[stream] == after[stream] for stream in before if before[stream] != "worker2")
    assert "worker2" in before.values()
    assert "worker2" not in after.values()


async def live_through_a_death(
    services: list[ServiceProcess], senders: list[RoutedSender]
) -> tuple[dict[str, str], dict[str, str]]:
    """Kill the second worker, later start it again; say who served each stream before and after its death."""
    for sender in senders:
        sender.begin()
    tasks = [asyncio.create_task(sender.send()) for sender in senders]
    await wait_for_answers(tasks, list(senders), 2)
    before = {sender.stream: only(sender.workers) for sender in senders}
    print("streams by worker", Counter(before.values()))
    for sender in senders:
        sender.begin()
    services[1].kill()
    await wait_for_answers(tasks, list(senders), 3)
    after = {sender.stream: sender.workers[-1] for sender in senders}
    report("unavailable after the death", senders, before)
    for sender in senders:
        if before[sender.stream] != "worker2":
            assert set(sender.workers) == {before[sender.stream]}
            assert not sender.refusals
        sender.begin()
    await asyncio.to_thread(services[1].start)
    while any(before[sender.stream] != (sender.workers or [""])[-1] for sender in senders):
        await wait_for_answers(tasks, list(senders), 1)
    report("unavailable at the return", senders, before)
    await end(tasks, list(senders))
    return before, after


def only(workers: list[str]) -> str:
    assert len(set(workers)) == 1, workers
    return workers[0]


def report(what: str, senders: list[RoutedSender], before: dict[str, str]) -> None:
    """Print the longest time without an answer of streams that move and of the others."""
    moved = [sender.longest_gap for sender in senders if before[sender.stream] == "worker2"]
    others = [sender.longest_gap for sender in senders if before[sender.stream] != "worker2"]
    print(f"{what}: moved streams {max(moved):.1f} s at most ({sum(moved) / len(moved):.1f} on average), ", end="")
    print(f"others {max(others):.1f} s; lease {LEASE_SECONDS:g} s")
