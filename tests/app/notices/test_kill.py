"""A real service, killed just after it has answered: its notice comes all the same; and notices from samples on."""

import signal
import time

import httpx2

from tests.app.harness import Service
from tests.app.incidents import begin, ordinary, outage
from tests.app.notices.conftest import SECRET
from tests.app.notices.receiver import receiving
from tests.app.test_cli_serve import serving


async def test_a_notice_survives_a_kill_right_after_the_answer(database):
    settings = {"ITAN_NOTICES_ALLOW_PRIVATE": "true"}
    async with receiving() as receiver, httpx2.AsyncClient(timeout=30) as http:
        with serving("--store", database, **settings) as (process, url):
            rule = {"target": "webhook", "url": receiver.url, "secret": SECRET}
            (await http.put(f"{url}/rules/on-call", json=rule)).raise_for_status()
            (await http.put(f"{url}/streams/s", json={"n_features": 2})).raise_for_status()
            (await http.post(f"{url}/observe?stream=s", json={"samples": ordinary(1000)})).raise_for_status()
            before = len(receiver.received)
            answer = (await http.post(f"{url}/observe?stream=s", json={"samples": outage(3)})).raise_for_status()
            process.send_signal(signal.SIGKILL)
            process.wait()
        opened = next(incident for incident in answer.json()["incident"] if incident)
        with serving("--store", database, **settings):
            while not any(said(one) == (opened, "incident.opened") for one in receiver.received):
                await receiver.wait_for(len(receiver.received) + 1)
    of_it = {one.id for one in receiver.received[before:] if said(one) == (opened, "incident.opened")}
    assert len(of_it) == 1


def said(one):
    return one.json["data"]["seq"], one.json["type"]


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

        begun = f'"seq":{opened},'
        while not (found(begun) and found(f"Incident {opened} of s opened, severity")):
            await receiver.wait_for(len(receiver.received) + 1)
    (hook,) = found(begun)
    assert hook["type"] == "incident.opened"
    assert hook["data"]["severity"] > 2
    assert hook["data"]["features"]
    assert all(feature["seen"] > 5 > feature["expected"] for feature in hook["data"]["features"])
