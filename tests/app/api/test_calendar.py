"""Contexts and calendars over HTTP: times reach the model, on every way in, and the model is the plain detector's."""

import json
from typing import Any

import numpy as np
import pytest

from app.storage import Position
from app.streams.log.events import read_batch, read_records
from app.streams.state.state import StreamState
from core import Detector, DetectorConfig
from tests.app.harness import NOW, FakeClock, Service

CALENDAR = {"periods": ["day", 3600], "timezone": "Europe/Berlin"}
CONFIG = {"features": [{"name": "rate"}, {"name": "load", "role": "context"}], "calendar": CALENDAR}
NDJSON = {"Content-Type": "application/x-ndjson"}
BYTES = {"Content-Type": "application/octet-stream"}
N = 400


def seasonal(n: int = N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Make samples (n, 2) that follow the day and their load, one each ten minutes, and times; some are not known."""
    rng = np.random.default_rng(seed)
    times = NOW - 600.0 * np.arange(n)[::-1]
    load = rng.normal(size=n)
    rate = 5 * np.sin(2 * np.pi * times / 86_400) + 2 * load + 0.3 * rng.normal(size=n)
    X = np.column_stack([rate, load])
    X[rng.random(n) < 0.03] += [9.0, 0.0]
    X[rng.random(n) < 0.05, 1] = np.nan
    times[rng.random(n) < 0.05] = np.nan
    return X, times


def body(X: np.ndarray, times: np.ndarray, **more: Any) -> dict[str, Any]:
    """Write samples as a body has them."""
    return {"samples": nulls(X), "timestamps": nulls(times), **more}


def nulls(numbers: np.ndarray) -> list[Any]:
    """Give numbers as lists, null for NaN."""
    return np.where(np.isnan(numbers), None, numbers.astype(object)).tolist()


def floats(column: list[float | None]) -> np.ndarray:
    """Read a column of an answer."""
    return np.array(column, np.float64)


def engine(exported: bytes) -> bytes:
    """Give the engine of an export."""
    return StreamState.from_bytes(exported, Position(0, 0)).detector.to_bytes()


@pytest.fixture
def detector() -> Detector:
    """Give a plain detector that has seen everything."""
    plain = Detector(DetectorConfig.from_dict(CONFIG))
    plain.observe(*seasonal())
    return plain


async def learn(service: Service, *cuts: int) -> list[float | None]:
    """Create the stream and send everything, cut at these places; give the scores."""
    await service.accepted("PUT", "/streams/s", json=CONFIG)
    X, times = seasonal()
    scores: list[float | None] = []
    for part in np.split(np.arange(N), cuts):
        scores += (await service.accepted("POST", "/observe?stream=s", json=body(X[part], times[part])))["score"]
    return scores


async def test_a_config_shows_roles_and_calendar(service: Service) -> None:
    created = await service.accepted("PUT", "/streams/s", json=CONFIG)
    config = (await service.accepted("GET", "/streams/s"))["config"]
    assert created["config"] == config
    assert [feature["role"] for feature in config["features"]] == ["value", "context"]
    assert config["calendar"] == CALENDAR
    await service.accepted("PUT", "/streams/s", json=CONFIG)
    other = {**CONFIG, "calendar": {"periods": ["day", 3600]}}
    problem = await service.refused("PUT", "/streams/s", 409, "stream_exists", json=other)
    assert "calendar" in problem["detail"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"features": [{"name": "a", "role": "context"}]}, "features"),
        ({"features": [{"name": "a", "role": "calendar"}]}, "features[0].role"),
        ({"n_features": 1, "calendar": ["day"]}, "calendar"),
        ({"n_features": 1, "calendar": {"periods": []}}, "calendar.periods"),
        ({"n_features": 1, "calendar": {"periods": ["day", "month"]}}, "calendar.periods[1]"),
        ({"n_features": 1, "calendar": {"periods": [0]}}, "calendar.periods[0]"),
        ({"n_features": 1, "calendar": {"periods": [*range(1, 10)]}}, "calendar.periods"),
        ({"n_features": 1, "calendar": {"periods": ["day"], "timezone": "Mars"}}, "calendar.timezone"),
        ({"n_features": 1, "calendar": {"periods": ["week"]}, "half_life_seconds": 86_400}, "calendar.periods[0]"),
    ],
)
async def test_a_wrong_calendar_or_role_is_refused_by_name(service: Service, config: Any, field: str) -> None:
    problem = await service.refused("PUT", "/streams/s", 422, "invalid_config", json=config)
    assert problem["field"] == field


@pytest.mark.parametrize(
    "given",
    [
        {"json": {"samples": [[1, 2]]}},
        {"content": "[1, 2]\n[3, 4]", "headers": NDJSON},
        {"content": np.ones(2).tobytes(), "headers": BYTES},
    ],
)
@pytest.mark.parametrize("query", ["", "&learn=false"])
async def test_without_times_a_stream_with_a_calendar_takes_nothing(service: Service, given: Any, query: str) -> None:
    await learn(service)
    before = await service.export()
    problem = await service.refused("POST", f"/observe?stream=s{query}", 422, "invalid_timestamps", **given)
    assert problem["field"] == "timestamps"
    assert "null" in problem["limit"]
    assert await service.export() == before


async def test_nulls_are_only_for_a_calendar_that_forgets_nothing_by_time(service: Service) -> None:
    await service.accepted("PUT", "/streams/plain", json={"n_features": 2})
    fading = {"n_features": 2, "calendar": {"periods": ["day"]}, "half_life_seconds": 86_400}
    await service.accepted("PUT", "/streams/fading", json=fading)
    for stream in ("plain", "fading"):
        given = {"samples": [[1, 2]] * 2, "timestamps": [NOW, None]}
        problem = await service.refused("POST", f"/observe?stream={stream}", 422, "invalid_timestamps", json=given)
        assert (problem["field"], problem["value"]) == ("timestamps[1]", None)


async def test_unknown_times_are_logged_as_such(service: Service) -> None:
    await service.accepted("PUT", "/streams/s", json=CONFIG)
    lines = "\n".join(json.dumps({"sample": [1.0, 2.0], "timestamp": time}) for time in (NOW - 5, None))
    await service.accepted("POST", "/observe?stream=s", content=lines, headers=NDJSON)
    await service.observe([[1.0, 2.0]], timestamps=[None])
    first, second = await service.store.entries("s", Position(0, 0), 10)
    assert read_records(read_batch(first.body).records).time[0] == NOW - 5
    assert np.isnan(read_records(read_batch(first.body).records).time[1])
    assert np.isnan(read_records(read_batch(second.body).records).time[0])
    assert (await service.accepted("GET", "/streams/s"))["newest_timestamp"] == NOW - 5
    assert (await service.accepted("GET", "/streams/s/history"))["time"] == [NOW - 5, NOW, NOW]


@pytest.mark.parametrize("cuts", [(), (1, 2, 3, 90, 300), tuple(range(1, N, 7))])
async def test_however_it_is_cut_and_killed_it_is_the_plain_detector(detector: Detector, cuts: tuple[int, ...]) -> None:
    plain = Detector(DetectorConfig.from_dict(CONFIG)).observe(*seasonal())
    clock = FakeClock()
    service = Service(clock=clock)
    async with service:
        np.testing.assert_array_equal(floats(await learn(service, *cuts)), plain.score)
        assert engine(await service.export()) == detector.to_bytes()
        await service.crash()
    async with Service(service.store, clock) as again:
        exported = await again.export()
        assert engine(exported) == detector.to_bytes()
        mismatches = (await again.accepted("GET", "/streams/s"))["replay_mismatches"]
        assert mismatches["version"] == mismatches["other"] == 0
        answer = await again.http.put("/streams/copy/import", content=exported, headers=BYTES)
        assert answer.status_code == 200, answer.text
        X, times = seasonal(50, seed=1)
        scores = (await again.accepted("POST", "/observe?stream=copy", json=body(X, times)))["score"]
        np.testing.assert_array_equal(floats(scores), detector.observe(X, times).score)


async def test_scores_densities_and_explanations_are_of_the_time(service: Service, detector: Detector) -> None:
    await learn(service)
    X, times = seasonal(40, seed=2)
    X[::2, 0] += 30.0
    scored = await service.accepted("POST", "/observe?stream=s&learn=false&explain=true", json=body(X, times))
    np.testing.assert_array_equal(floats(scored["score"]), detector.score(X, times))
    explained = [row for row, one in enumerate(scored["explanation"]) if one]
    assert len(explained) >= 20
    expected = detector.explain(X[explained], times[explained])
    found = [scored["explanation"][row] for row in explained]
    np.testing.assert_array_equal([one["contributions"]["rate"] for one in found], expected.contribution[:, 0])
    assert {one["contributions"]["load"] for one in found} == {None}
    np.testing.assert_array_equal([[*one["expected"].values()] for one in found], expected.expected)
    points = {"points": nulls(X), "timestamps": nulls(times)}
    density = await service.accepted("POST", "/density?stream=s", json=points)
    np.testing.assert_array_equal(density["log_density"], detector.log_density(X, times))
    shifted = points | {"timestamps": nulls(times - 43_200)}
    assert (await service.accepted("POST", "/density?stream=s", json=shifted))["log_density"] != density["log_density"]


async def test_a_logged_sample_is_explained_at_its_own_time(service: Service, detector: Detector) -> None:
    await learn(service)
    X, times = seasonal()
    unknown = int(np.flatnonzero(np.isnan(times))[-1])
    for row in (N - 3, unknown):
        sample = await service.accepted("GET", f"/streams/s/samples/{row + 1}")
        assert sample["score_now"] == detector.score(X[[row]], times[[row]])[0]
        assert sample["contributions"]["load"] is None
        assert sample["expected"]["load"] is not None


async def test_a_sample_of_context_alone_is_refused(service: Service) -> None:
    await learn(service)
    given = {"samples": [[1.0, 2.0], [None, 2.0]], "timestamps": [NOW, NOW]}
    problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_samples", json=given)
    assert (problem["field"], problem["limit"].endswith("no context")) == ("samples[1]", True)


PATH = "/observe?stream=new&calendar=day,3600&timezone=Europe/Berlin"
FIRST = {"samples": [{"rate": 1.0}], "timestamps": [NOW]}


async def test_the_first_samples_create_a_stream_with_a_calendar(service: Service) -> None:
    for _ in range(2):
        await service.accepted("POST", PATH, json=FIRST)
    config = (await service.accepted("GET", "/streams/new"))["config"]
    assert config["calendar"] == CALENDAR
    await service.accepted("POST", "/observe?stream=new", json=FIRST)
    await service.accepted("POST", "/observe?stream=plain", json=FIRST)
    for stream, query in (("new", "calendar=week"), ("plain", "calendar=day"), ("new", "calendar=week&learn=false")):
        before = await service.export(stream)
        await service.refused("POST", f"/observe?stream={stream}&{query}", 409, "stream_exists", json=FIRST)
        assert await service.export(stream) == before


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ("calendar=day,month", 422, "invalid_config", "calendar.periods[1]"),
        ("calendar=", 422, "invalid_config", "calendar.periods[0]"),
        ("calendar=nan", 422, "invalid_config", "calendar.periods[0]"),
        ("calendar=day&timezone=Mars", 422, "invalid_config", "calendar.timezone"),
        ("timezone=Europe/Berlin", 400, "invalid_query", "timezone"),
    ],
)
async def test_a_wrong_calendar_in_the_query_creates_nothing(
    service: Service, query: str, status: int, code: str, field: str
) -> None:
    problem = await service.refused("POST", f"/observe?stream=new&{query}", status, code, json=FIRST)
    assert problem["field"] == field
    await service.refused("GET", "/streams/new", 404, "unknown_stream")


async def test_a_calendar_without_times_creates_nothing(service: Service) -> None:
    problem = await service.refused("POST", PATH, 422, "invalid_timestamps", json={"samples": [[1.0]]})
    assert problem["field"] == "timestamps"
    await service.refused("GET", "/streams/new", 404, "unknown_stream")


async def test_records_of_many_streams_bring_their_times(service: Service) -> None:
    await service.accepted("PUT", "/streams/s", json=CONFIG)
    await service.accepted("PUT", "/streams/plain", json={"n_features": 2})
    X, times = seasonal()
    records: list[dict[str, Any]] = [
        {"stream": "s", "sample": sample, "timestamp": time}
        for sample, time in zip(nulls(X), nulls(times), strict=True)
    ]
    untimed = {"stream": "s", "sample": [1.0, 2.0]}
    records[100:100] = [untimed, {"stream": "plain", "sample": [1.0, 2.0], "timestamp": None}, untimed]
    answer = await service.accepted("POST", "/ingest", json=records)
    problems = [(problem["record"], problem["code"], problem["field"]) for problem in answer["problems"]]
    assert problems == [(place, "invalid_timestamps", f"records[{place}].timestamp") for place in (100, 101, 102)]
    plain = Detector(DetectorConfig.from_dict(CONFIG))
    np.testing.assert_array_equal(floats(answer["score"]), plain.observe(X, times).score)
    assert engine(await service.export()) == plain.to_bytes()


async def test_a_source_may_give_its_streams_a_calendar(service: Service) -> None:
    config = {"features": [{"name": "rate"}, {"name": "load", "role": "context"}], "calendar": CALENDAR}
    source = {"stream": "{host}", "timestamp": "at", "features": ["*"], "ignore": ["at"], "config": config}
    await service.accepted("PUT", "/sources/mine", json=source)
    record = {"host": "web", "rate": 1.0, "load": 2.0}
    answer = await service.accepted("POST", "/ingest?source=mine", json=[{**record, "at": NOW - 5}])
    assert answer["taken"] == 1
    created = (await service.accepted("GET", "/streams/web"))["config"]
    assert (created["calendar"], created["features"][1]["role"]) == (CALENDAR, "context")
