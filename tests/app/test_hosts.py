"""Names that requests may bear: a page whose name was led here must not reach an open service."""

import pytest

from app.hosts import Hosts
from app.settings import Settings
from tests.app.harness import Service

OURS = [
    "localhost",
    "LOCALHOST:8000",
    "itan.localhost",
    "127.0.0.1:8000",
    "[::1]:8000",
    "[::1]",
    "192.168.1.7",
    "",
    "localhost.",
]
OTHERS = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "notlocalhost",
    "a:b:c",
    "[",
]
READS = [("GET", "/streams"), ("GET", "/streams/s"), ("GET", "/streams/s/history"), ("GET", "/streams/s/events")]
CHANGES = [("DELETE", "/streams/s"), ("POST", "/observe?stream=s"), ("POST", "/feedback?stream=s")]


@pytest.mark.parametrize("host", OURS)
def test_addresses_and_this_machine_are_ours(host):
    assert Hosts([]).know(host)


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_are_not(host):
    assert not Hosts([]).know(host)
    assert Hosts(["*"]).know(host)
    assert not Hosts(["itan.example"]).know(host)


def test_listed_names_are_ours_too():
    hosts = Hosts(["itan.example", "Other.Example"])
    assert all(map(hosts.know, ["itan.example", "ITAN.example:443", "other.example", "localhost"]))


@pytest.mark.parametrize(
    ("settings", "answers"),
    [
        ({}, False),
        ({"allowed_hosts": "a.example, evil.example"}, True),
        ({"allowed_hosts": "*"}, True),
        ({"allowed_hosts": "a.example", "api_keys": "k"}, False),
        ({"api_keys": "k"}, True),
        ({"host": "0.0.0.0", "allow_open": True}, True),
        ({"host": "0.0.0.0", "allow_open": True, "allowed_hosts": "a.example"}, False),
        ({"host": "127.0.0.2"}, False),
    ],
)
def test_who_is_answered_by_which_service(settings, answers):
    assert Settings(**settings).hosts.know("evil.example") == answers


@pytest.mark.parametrize(("method", "path"), READS + CHANGES)
async def test_a_name_that_was_led_here_gets_nothing_and_changes_nothing(service, method, path):
    await service.observe([[1.0, 2.0]] * 3)
    before = await service.export()
    headers = {"Host": "evil.example:8000", "Sec-Fetch-Site": "same-origin"}
    problem = await service.refused(method, path, 421, "unknown_host", headers=headers)
    assert (problem["field"], problem["value"]) == ("host", "evil.example:8000")
    assert await service.export() == before


async def test_metrics_name_streams_and_are_for_whom_we_know(service):
    for host in ("localhost:8000", "127.0.0.1:8000", ""):
        assert (await service.http.get("/metrics", headers={"Host": host})).status_code == 200
    await service.refused("GET", "/metrics", 421, "unknown_host", headers={"Host": "evil.example:8000"})
    assert (await service.http.get("/livez", headers={"Host": "evil.example"})).status_code == 200


@pytest.mark.parametrize("settings", [{"api_keys": "k"}, {"host": "0.0.0.0", "allow_open": True}])
async def test_a_guarded_service_gives_prometheus_its_metrics_under_any_name(settings):
    async with Service(**settings) as service:
        assert (await service.http.get("/metrics", headers={"Host": "worker1:8000"})).status_code == 200


async def test_with_keys_any_name_is_answered():
    async with Service(api_keys="k", key="k") as service:
        assert (await service.http.get("/streams", headers={"Host": "itan.example"})).status_code == 200
