"""Names of streams and keys in /metrics are for those who may know them."""

import pytest

from app.settings import WithoutKey
from tests.app.harness import Service

KEYS = "all,r:read,m:metrics,plant-r:read:plant-*,plant-m:metrics:plant-*,o:observe,l:label,a:admin"
STREAMS = ("plant-1", "plant-2", "quiet", "secret")
WATCHED = "plant-2,quiet,never-seen"


async def scrape(key: str = "", **settings: object) -> tuple[int, str]:
    """Scrape a service with four streams, one of them refused once by a limit of a key."""
    async with Service(api_keys=KEYS, metrics_streams=WATCHED, **settings) as service:
        headers = {"X-API-Key": "all"}
        for stream in STREAMS:
            await service.accepted("POST", f"/observe?stream={stream}", json={"samples": [[1.0]]}, headers=headers)
        service.app.state.service.metrics.refusals.count("streams", "customer")
        answer = await service.http.get("/metrics", headers={"X-API-Key": key} if key else {})
        return answer.status_code, answer.text


def named(text: str) -> set[str]:
    return {name for name in (*STREAMS, "never-seen", "customer") if name in text}


def value(text: str, series: str) -> float:
    (line,) = (line for line in text.splitlines() if line.startswith(series + " "))
    return float(line.rpartition(" ")[2])


EVERY = {*STREAMS, "never-seen"}
PLANTS = {"plant-1", "plant-2"}


@pytest.mark.parametrize(
    ("key", "names", "hidden", "hidden_watched"),
    [
        ("", set(), 4, 3),
        ("o", set(), 4, 3),
        ("l", set(), 4, 3),
        ("r", EVERY, 0, 0),
        ("m", EVERY | {"customer"}, 0, 0),
        ("a", EVERY | {"customer"}, 0, 0),
        ("all", EVERY | {"customer"}, 0, 0),
        ("plant-r", PLANTS, 2, 2),
        ("plant-m", PLANTS, 2, 2),
    ],
)
async def test_a_key_shows_the_names_that_it_may_know(key, names, hidden, hidden_watched):
    status, text = await scrape(key)
    assert (status, named(text)) == (200, names)
    assert value(text, "itan_hidden_streams") == hidden
    assert value(text, "itan_hidden_watched_streams") == hidden_watched
    assert value(text, 'itan_samples_total{outcome="learned"}') == 4
    assert value(text, 'itan_limit_refusals_total{limit="streams"}') == 1


async def test_a_wrong_key_gets_no_metrics():
    assert (await scrape("wrong"))[0] == 401


@pytest.mark.parametrize(
    ("key", "status"), [("", 401), ("o", 403), ("l", 403), ("m", 200), ("plant-r", 200), ("a", 200)]
)
async def test_metrics_can_ask_for_a_key(key, status):
    found, text = await scrape(key, metrics_without_key=WithoutKey.NOTHING)
    assert found == status
    assert ("itan_samples_total" in text) == (status == 200)


@pytest.mark.parametrize("key", ["", "o"])
async def test_metrics_can_tell_everything_to_whoever_asks(key):
    _, text = await scrape(key, metrics_without_key=WithoutKey.ALL)
    assert named(text) == EVERY | {"customer"}


async def test_a_service_that_asks_for_no_key_names_its_streams():
    async with Service(metrics_without_key=WithoutKey.NOTHING) as service:
        await service.observe([[1.0]], "plant-1")
        assert "plant-1" in (await service.http.get("/metrics")).text


async def test_thousands_of_keys_are_not_as_many_series():
    async with Service() as service:
        for number in range(1000):
            service.app.state.service.metrics.refusals.count("samples", f"key-{number}")
        text = (await service.http.get("/metrics")).text
        assert text.count("itan_key_limit_refusals_total{") == 101
        assert value(text, 'itan_key_limit_refusals_total{key="other",limit="samples"}') == 900
