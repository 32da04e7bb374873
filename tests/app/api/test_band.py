"""The expected band over HTTP: the detector's quantiles, at moments or at recorded contexts, in slices."""

import asyncio
import time
from typing import Any

import numpy as np
import pytest

from app.streams.slices import slices
from app.streams.views import band as bands
from tests.app.api.test_calendar import nulls
from tests.app.harness import NOW, Service, blobs

CALENDAR = {"periods": ["day"], "timezone": "Europe/Berlin"}
DAY = 86_400
PATH = "/streams/s/band?feature=rate"


async def grow(service: Service, *, context: bool = False, n: int = 1500, every: float = 600.0) -> np.ndarray:
    """Make a stream that follows the day, and perhaps its load; give its samples."""
    rng = np.random.default_rng(0)
    times = NOW - every * np.arange(n)[::-1]
    X = np.column_stack([5 * np.sin(2 * np.pi * times / DAY) + 0.5 * rng.normal(size=n), rng.normal(size=n)])
    X[:, 0] += 3 * X[:, 1] if context else 0.0
    features = [{"name": "rate"}, {"name": "load", "role": "context" if context else "value"}]
    await service.accepted("PUT", "/streams/s", json={"features": features, "calendar": CALENDAR})
    for part in np.split(np.arange(n), range(100, n, 100)):
        await service.observe(nulls(X[part]), timestamps=nulls(times[part]))
    return X


async def test_it_is_the_detectors_also_in_the_future(service: Service) -> None:
    await grow(service)
    band = await service.accepted("GET", f"{PATH}&from={NOW}&to={NOW + DAY}&levels=0.9,0.1&points=49")
    times = np.linspace(NOW, NOW + DAY, 49)
    detector = service.registry.peek("s").detector
    assert (band["time"], band["level"], band["as_of_seq"]) == (times.tolist(), [0.9, 0.1], 1500)
    np.testing.assert_allclose(band["values"], detector.band(0).quantiles([0.9, 0.1], None, times).T)
    high, low = np.array(band["values"])
    truth = 5 * np.sin(2 * np.pi * times / DAY)
    assert ((low < truth) & (truth < high)).mean() > 0.9
    assert (high - low).max() < 4
    assert "seq" not in band


async def test_most_fresh_samples_are_inside(service: Service) -> None:
    await grow(service)
    times = NOW + 600.0 * np.arange(1, 145)
    band = await service.accepted("GET", f"{PATH}&from={times[0]}&to={times[-1]}&levels=.05,.95&points=144")
    low, high = np.array(band["values"])
    fresh = 5 * np.sin(2 * np.pi * times / DAY) + 0.5 * np.random.default_rng(1).normal(size=144)
    assert 0.8 < ((low < fresh) & (fresh < high)).mean() < 0.99


async def test_with_context_it_stands_at_the_recorded_samples(service: Service) -> None:
    X = await grow(service, context=True)
    band = await service.accepted("GET", f"{PATH}&from={NOW - 6000}&to={NOW + DAY}&levels=.05,.95")
    seqs = list(range(1490, 1501))
    assert (band["seq"], band["time"]) == (seqs, [NOW - 600 * (1500 - seq) for seq in seqs])
    rows = np.array(seqs) - 1
    detector = service.registry.peek("s").detector
    expected = detector.band(0).quantiles([0.05, 0.95], X[rows, 1:], np.array(band["time"]))
    np.testing.assert_allclose(band["values"], expected.T)
    low, high = np.array(band["values"])
    assert ((low < X[rows, 0]) & (X[rows, 0] < high)).mean() > 0.7
    assert np.corrcoef((low + high) / 2, X[rows, 1])[0, 1] > 0.9
    empty = await service.accepted("GET", f"{PATH}&from={NOW + 1}&to={NOW + DAY}")
    assert (empty["time"], empty["values"], empty["seq"]) == ([], [[], [], []], [])


async def test_samples_are_thinned_and_the_log_is_read_back_only_so_far(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await grow(service, context=True)
    monkeypatch.setattr(bands, "FIRST_READ", 32)
    whole = await service.accepted("GET", f"{PATH}&from={NOW - 600 * 1400}&to={NOW}&points=2000")
    assert whole["seq"] == list(range(100, 1501))
    thinned = await service.accepted("GET", f"{PATH}&from={NOW - 600 * 1400}&to={NOW}&points=15")
    assert (thinned["seq"][0], thinned["seq"][-1], len(thinned["seq"])) == (100, 1500, 15)
    monkeypatch.setattr(bands, "MAX_SCANNED", 200)
    bounded = await service.accepted("GET", f"{PATH}&from={NOW - 600 * 1400}&to={NOW}&points=2000")
    assert bounded["seq"] == list(range(1301, 1501))
    earlier = await service.accepted("GET", f"{PATH}&from={NOW - 600 * 1400}&to={NOW}&points=2000&until=700")
    assert earlier["seq"] == list(range(501, 701))
    beyond = await service.accepted("GET", f"{PATH}&from={NOW - 600 * 1400}&to={NOW}&points=2000&until=1700")
    assert beyond["seq"] == bounded["seq"]


async def test_samples_without_a_time_stand_where_they_came_with_an_unknown_calendar(service: Service) -> None:
    await grow(service, context=True)
    await service.observe([[0.0, 0.5]], timestamps=[None])
    band = await service.accepted("GET", f"{PATH}&from={NOW - 1}&to={NOW}&levels=.05,.95")
    assert (band["seq"], band["time"]) == ([1500, 1501], [NOW, NOW])
    detector = service.registry.peek("s").detector
    np.testing.assert_allclose(np.array(band["values"])[:, 1], detector.band(0).quantiles([0.05, 0.95], [[0.5]])[0])


async def test_without_context_it_is_flat(service: Service) -> None:
    await service.observe(blobs(300))
    band = await service.accepted("GET", f"/streams/s/band?feature=1&from={NOW}&to={NOW + DAY}&points=5")
    detector = service.registry.peek("s").detector
    np.testing.assert_array_equal(band["values"], detector.band(1).quantiles([0.05, 0.5, 0.95]).T.repeat(5, axis=1))
    assert band["level"] == [0.05, 0.5, 0.95]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=1800000000&to=1800000001", "feature"),
        ("feature=memory&from=1800000000&to=1800000001", "feature"),
        ("feature=load&from=1800000000&to=1800000001", "feature"),
        ("feature=rate&to=1800000001", "from"),
        ("feature=rate&from=1800000000", "to"),
        ("feature=rate&from=1800000002&to=1800000001", "from"),
        ("feature=rate&from=1800000000000&to=1800000001", "from"),
        ("feature=rate&from=today&to=1800000001", "from"),
        ("feature=rate&from=nan&to=1800000001", "from"),
        ("feature=rate&from=1800000000&to=inf", "to"),
        *(
            (f"feature=rate&from=1800000000&to=1800000001&levels={text}", "levels")
            for text in ("", "0", "1e-300", "1", "5", "nan")
        ),
        ("feature=rate&from=1800000000&to=1800000001&levels=" + ",".join(["0.5"] * 10), "levels"),
        *((f"feature=rate&from=1800000000&to=1800000001&points={text}", "points") for text in ("1", "2001", "x")),
        *((f"feature=rate&from=1800000000&to=1800000001&until={text}", "until") for text in ("0", "x")),
    ],
)
async def test_wrong_queries_are_refused_by_name(service: Service, query: str, field: str) -> None:
    await grow(service, context=True, n=100)
    problem = await service.refused("GET", f"/streams/s/band?{query}", 400, "invalid_query")
    assert (problem["field"], bool(problem["limit"])) == (field, True)


async def test_before_the_stream_is_ready_or_known_there_is_none(service: Service) -> None:
    query = f"&from={NOW}&to={NOW}"
    await service.refused("GET", PATH + query, 404, "unknown_stream")
    await grow(service, n=20)
    await service.refused("GET", PATH + query, 409, "not_ready")


async def test_a_key_needs_to_read_the_stream() -> None:
    async with Service(api_keys="all,other:read:t-*,writes:observe", key="all") as service:
        await grow(service, n=100)
        query = f"{PATH}&from={NOW}&to={NOW}"
        await service.accepted("GET", query)
        for key, status, code in (
            ("other", 403, "forbidden"),
            ("writes", 403, "forbidden"),
            ("", 401, "unauthenticated"),
        ):
            headers: dict[str, Any] = {"headers": {"Authorization": f"Bearer {key}"}}
            await service.refused("GET", query, status, code, **headers)


async def test_one_model_is_shown_though_the_stream_goes_on(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await grow(service)
    monkeypatch.setattr(bands, "slices", lambda n: slices(n, 1, 1))
    query = f"{PATH}&from={NOW}&to={NOW + DAY}&points=1000"
    before = await service.accepted("GET", query)
    asked = asyncio.create_task(service.accepted("GET", query))
    for _ in range(5):
        await asyncio.sleep(0)
    await service.observe(blobs(600), timestamps=[NOW] * 600)
    assert not asked.done()
    assert await asked == before
    assert (await service.accepted("GET", query))["values"] != before["values"]


async def test_others_have_their_turn_while_the_longest_band_is_computed(service: Service) -> None:
    await grow(service)
    levels = ",".join(str(k / 10) for k in range(1, 10))
    asked = asyncio.create_task(service.http.get(f"{PATH}&from={NOW}&to={NOW + DAY}&points=2000&levels={levels}"))
    waits = []
    while not asked.done():
        # CPU, not time: that depends on what else runs on the machine
        began = time.thread_time()
        await asyncio.sleep(0)
        assert (await service.http.get("/livez")).status_code == 200
        waits.append(time.thread_time() - began)
    assert (await asked).status_code == 200
    assert len(waits) > 5
    assert max(waits) < 0.2
