"""A storm of flags while the receiver does not answer: one notice, and no request waits for it."""

import asyncio
import time

import numpy as np

from tests.app.harness import Service
from tests.app.incidents import begin
from tests.app.notices.conftest import SECRET
from tests.app.notices.receiver import receiving

FLAGS = 1_000


def storm() -> list[list[float]]:
    """Make samples of which each is further off than the one before."""
    return [[place, -place] for place in np.geomspace(20, 1e12, FLAGS).tolist()]


async def test_a_storm_of_flags_is_one_notice_and_no_request_waits_for_it():
    answering, arrived = asyncio.Event(), []

    async def hold(reader, writer):
        arrived.append(await reader.readuntil(b"\r\n\r\n"))
        await answering.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server, receiving() as receiver, Service(notices_allow_private=True) as service:
        try:
            service.clock.wall = time.time()  # the store marks changes with the real time
            delivery, port = service.app.state.delivery, server.sockets[0].getsockname()[1]
            rule = {"target": "webhook", "secret": SECRET, "streams": "s"}
            await service.accepted("PUT", "/rules/held", json=rule | {"url": f"http://127.0.0.1:{port}/"})
            await service.accepted("PUT", "/rules/quick", json=rule | {"url": receiver.url})
            await begin(service, incident_accept_samples=2 * FLAGS)
            first, *others = np.array_split(storm(), 20)
            answers = [await service.observe(first)]
            await delivery.work()
            await receiver.wait_for(1)
            while not arrived:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            for samples in others:
                answers.append(await service.observe(samples))  # the receiver has a notice, and has not answered
                await delivery.work()
            assert sum(flag for answer in answers for flag in answer["is_anomaly"]) == FLAGS
            opened = {incident for answer in answers for incident in answer["incident"]}
            assert len(opened) == 1
            of_storm = [one.json for one in receiver.received if one.json["data"]["incident"] in opened]
            assert [one["type"] for one in of_storm] == ["incident.opened"]
            assert len(arrived) == 1
        finally:
            answering.set()
