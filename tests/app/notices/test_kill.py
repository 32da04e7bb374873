"""Notices from samples on; and a real service that is killed: its notices come all the same."""

import asyncio
import os
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from uuid import uuid4

from itan_client import AsyncClient, Observed, ServiceUnreachable
from tests.app.harness import Service
from tests.app.incidents import begin, ordinary, outage
from tests.app.notices.conftest import SECRET
from tests.app.notices.receiver import Received, Receiver, receiving
from tests.integration.process import ServiceProcess

What = tuple[str, int, str]
"""A stream, the seq of its incident, and the type of a notice."""
KILLS = int(os.environ.get("ITAN_TEST_KILLS", "3"))
"""Kill more often with `ITAN_TEST_KILLS=100 pytest -s`."""
OBSERVED = list[tuple[str, Observed]]


async def right_after_the_answers(receiver: Receiver, answering: asyncio.Task[OBSERVED], dice: random.Random) -> None:
    await answering


async def as_a_notice_arrives(receiver: Receiver, answering: asyncio.Task[OBSERVED], dice: random.Random) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(3):
            await receiver.wait_for(len(receiver.received) + dice.randint(1, 4))
    await asyncio.sleep(dice.uniform(0, 0.005))


async def at_any_time(receiver: Receiver, answering: asyncio.Task[OBSERVED], dice: random.Random) -> None:
    await asyncio.sleep(dice.uniform(0, 1.5))


MOMENTS = [right_after_the_answers, as_a_notice_arrives, at_any_time]


async def observe_all(client: AsyncClient, opening: Sequence[str], ending: Sequence[str]) -> OBSERVED:
    """Let incidents of new streams open, and those of others end."""
    bodies = {stream: [*ordinary(400), *outage(3)] for stream in opening} | {stream: ordinary(20) for stream in ending}
    return [(stream, await observe_surely(client, stream, samples)) for stream, samples in bodies.items()]


async def observe_surely(client: AsyncClient, stream: str, samples: list[list[float]]) -> Observed:
    """Send samples until they are acknowledged, with the same ids."""
    ids = [f"{stream}-{uuid4().hex}" for _ in samples]
    while True:
        try:
            return await client.observe(stream, samples, ids)
        except ServiceUnreachable:
            await asyncio.sleep(0.02)


def expected_of(answers: OBSERVED) -> list[What]:
    """Give the notices that are due of what was acknowledged, in order."""
    return [
        (stream, incident or 0, "incident.opened" if event == "opened" else "incident.closed")
        for stream, answer in answers
        for incident, event in zip(answer.incident or [], answer.event or [], strict=True)
        if event
    ]


def what(one: Received) -> What:
    about = one.json
    return about["data"]["stream"], about["data"]["incident"], about["type"]


async def through_kills(
    service: ServiceProcess, client: AsyncClient, receiver: Receiver, dice: random.Random
) -> list[What]:
    """Let incidents open and end while the service is killed; give the notices that are due."""
    expected, before = list[What](), list[str]()
    await client.put_rule("on-call", {"target": "webhook", "url": receiver.url, "secret": SECRET})
    for kill in range(KILLS):
        streams = [f"{kill}-{place}" for place in range(2)]
        answering = asyncio.create_task(observe_all(client, streams, before))
        await MOMENTS[kill % len(MOMENTS)](receiver, answering, dice)
        service.kill()
        await asyncio.to_thread(service.start)
        expected += expected_of(await answering)
        before = streams
    return expected


async def test_no_kill_loses_a_notice_and_doubles_have_the_same_id(database: str, tmp_path: Path) -> None:
    """Kill a real service just after its answers, just as its notices arrive, and at any other time."""
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    async with receiving() as receiver:
        with ServiceProcess(database, tmp_path, notices_allow_private=True) as service:
            async with AsyncClient(service.url, retry_seconds=0) as client:
                expected = await through_kills(service, client, receiver, dice)
            with suppress(TimeoutError):
                async with asyncio.timeout(30):
                    while not set(expected) <= set(map(what, receiver.received)):
                        await receiver.wait_for(len(receiver.received) + 1)
    first, ids = dict.fromkeys(map(what, receiver.received)), defaultdict(set)
    for one in receiver.received:
        ids[what(one)].add(one.id)
    print(f"seed {seed}: {KILLS} kills, {len(ids)} notices, {len(receiver.received) - len(ids)} doubles")
    assert set(first) == set(expected)
    assert len(expected) >= 2 * KILLS
    assert [len(same) for same in ids.values()] == [1] * len(expected)
    assert len(set.union(*ids.values())) == len(expected)
    by_stream = itemgetter(0)
    assert sorted(first, key=by_stream) == sorted(expected, key=by_stream)  # those of each stream in their order


async def test_samples_become_notices_with_features_and_severity():
    async with receiving() as receiver, Service(notices_allow_private=True) as service:
        service.clock.wall = time.time()  # the store marks changes with the real time
        delivery = service.app.state.delivery
        await service.accepted("PUT", "/rules/on-call", json={"target": "chat", "url": receiver.url})
        rule = {"target": "webhook", "url": receiver.url, "secret": SECRET, "least_severity": 2}
        await service.accepted("PUT", "/rules/hook", json=rule)
        await begin(service)
        answer = await service.observe(outage(12))
        opened = next(incident for incident in answer["incident"] if incident)
        await delivery.work()

        def found(text):
            return [one.json for one in receiver.received if text in one.body.decode()]

        begun = f'"incident":{opened},'
        while not (found(begun) and found(f"Incident {opened} of s opened, severity")):
            await receiver.wait_for(len(receiver.received) + 1)
    (hook,) = found(begun)
    assert hook["type"] == "incident.opened"
    assert hook["data"]["peak_severity"] > 2
    assert hook["data"]["features"]
    assert all(feature["value"] > 5 > feature["expected"] for feature in hook["data"]["features"])
