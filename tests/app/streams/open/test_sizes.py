"""Estimates against engines that have grown as far as they can."""

import numpy as np
import pytest

from app.storage import Position
from app.storage.memory import MemoryStore
from app.streams.open.sizes import estimate
from app.streams.state.memory import SESSION_BYTES, held_bytes
from app.streams.state.state import StreamState, new_state
from core import Detector, DetectorConfig
from tests.app.harness import NOW, Service

CAPPED = {
    "one feature": {"n_features": 1, "split": "both", "beta": 1.05, "max_nodes": 31},
    "narrow": {"n_features": 2, "split": "both", "beta": 1.05, "max_nodes": 63},
    "wide": {"n_features": 24, "split": "both", "beta": 1.05, "max_nodes": 7},
    "diagonal": {"n_features": 80, "split": "both", "beta": 1.05, "max_nodes": 5},
    "paper": {"n_features": 2, "profile": "paper", "beta": 1.05, "max_nodes": 31},
    "long warm-up": {"n_features": 3, "warmup": 1000, "split": "both", "beta": 1.05, "max_nodes": 7},
}
SLACK = 2.5
"""The estimate has room for what these streams do not fill: reservoirs, rounds, labelled samples."""
LABELS_BYTES = 110_000
"""Room for labels, times and runs held out that these few samples do not fill."""
ROUND_BEGINS = 25_600
"""From here on a round of the default profile is as long as it can be."""


def samples(n: int, m: int) -> np.ndarray:
    """Make samples of three clusters, with a value missing here and there."""
    rng = np.random.default_rng(m)
    X = rng.normal(size=(n, m)) + 6.0 * rng.integers(0, 3, size=(n, 1))
    if m > 1:
        X[::11, 0] = np.nan
    return X


def memory_bytes(state: StreamState) -> int:
    """Measure a state now: the state itself measures now and then."""
    return SESSION_BYTES + held_bytes(state)


def grown(config: DetectorConfig) -> tuple[StreamState, int]:
    """Give a stream with all its nodes, and scores and labels, and the most that it took on the way there."""
    state = new_state(Detector(config), Position(0, 0))
    X, most = samples(1500, config.n_features), 0
    for start in range(0, len(X), 50):
        records = state.detector.observe(X[start : start + 50]).records
        if start > 1000:
            state.detector.feedback(records, [bool(seq % 3) for seq in records.seq])
        most = max(most, memory_bytes(state))
    return state, most


@pytest.mark.parametrize("fields", CAPPED.values(), ids=list(CAPPED))
def test_no_engine_takes_more_than_its_estimate(fields):
    config = DetectorConfig(**fields)
    state, most = grown(config)
    assert len(state.detector.describe()["nodes"]) >= config.max_nodes - 1
    expected = estimate(config)
    body = state.to_bytes()
    assert len(body) < expected.snapshot_bytes < SLACK * len(body) + LABELS_BYTES
    restored = StreamState.from_bytes(body, state.position).memory_bytes()
    assert max(most, restored) < expected.memory_bytes


@pytest.mark.parametrize("m", [2, 8])
def test_the_estimate_is_near_where_a_whole_round_is_pending(m):
    config = DetectorConfig(n_features=m, split="both", beta=1.05)
    state, most = new_state(Detector(config), Position(0, 0)), 0
    X = samples(ROUND_BEGINS + 700, m)
    state.detector.observe(X[:ROUND_BEGINS])
    for i in range(ROUND_BEGINS, len(X)):
        state.detector.observe(X[i : i + 1])
        if i % 8 == 0:
            most = max(most, memory_bytes(state))
    assert most < estimate(config).memory_bytes < SLACK * most


async def test_a_sample_takes_no_more_of_the_log_than_estimated():
    store, ids = MemoryStore(), 10
    async with Service(store) as service:
        expected = await service.accepted("POST", "/streams/estimate", json={"n_features": 3})
        X = samples(1200, 3)
        await service.observe([[None if np.isnan(x) else float(x) for x in row] for row in X[:1000]])
        before = (await store.size("s")).log_bytes
        for i in range(1000, 1200):
            row = [None if np.isnan(x) else float(x) for x in X[i]]
            await service.observe([row], ids=[f"{i:010}"], timestamps=[NOW])
        each = ((await store.size("s")).log_bytes - before) / 200
        assert each < expected["log_bytes_per_sample"] + ids < 2 * each


async def test_the_estimate_creates_nothing_and_a_stream_may_have_its_name(service):
    expected = await service.accepted("POST", "/streams/estimate", json={"n_features": 8})
    assert expected["snapshot_bytes"] < expected["memory_bytes"]
    assert expected["streams_in_budget"] == 2**30 // expected["memory_bytes"]
    assert await service.store.streams("", 10) == []
    await service.observe([[1.0]], "estimate")
    assert (await service.accepted("GET", "/streams/estimate"))["stream"] == "estimate"


async def test_a_config_that_is_not_valid_is_refused_there_too(service):
    problem = await service.refused("POST", "/streams/estimate", 422, "invalid_config", json={"n_features": 0})
    assert problem["field"] == "n_features"
    await service.refused("POST", "/streams/estimate", 400, "invalid_json", content=b"{", headers=JSON)
    await service.refused("POST", "/streams/estimate?x=1", 400, "invalid_query", json={"n_features": 1})


JSON = {"Content-Type": "application/json"}
