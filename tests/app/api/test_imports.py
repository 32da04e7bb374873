"""Exports that were tampered with: each is refused, says why, and leaves the stream as it was."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import DetectorConfig
from tests.app.harness import NOW, Service
from tests.app.streams.maintenance.mutants import apart, arrays_of, sealed
from tests.core.histories import Life

BYTES = {"content-type": "application/octet-stream"}
CONFIGS: dict[str, dict[str, Any]] = {
    "times": {"n_features": 2, "half_life_seconds": 60.0},
    "eg": {"n_features": 2, "mixture": "eg", "half_life_samples": 40.0},
    "paper": {"n_features": 2, "profile": "paper"},
    "young": {"n_features": 2, "warmup": 4000},
    "codes": {"features": [{"name": "a", "kind": "categorical"}, {"name": "b"}]},
}

Change = Callable[[dict[str, Any], dict[str, Any], dict[str, np.ndarray]], None]


def field(name: str, value: Any) -> Change:
    """Change what stands beside the engine."""
    return lambda outer, engine, arrays: outer["meta"].update({name: value})


def entry(name: str, value: Any, at: Any = 0) -> Change:
    """Change a number of the engine."""
    return lambda outer, engine, arrays: arrays[name].__setitem__(at, value)


MUTANTS: dict[str, tuple[str, Change]] = {
    "a newest time that is no number": ("times", field("newest_timestamp", float("nan"))),
    "an infinite newest time": ("times", field("newest_timestamp", float("inf"))),
    "a newest time beyond all": ("times", field("newest_timestamp", 1e308)),
    "a newest time in two hours": ("times", field("newest_timestamp", NOW + 7200)),
    "a newest time before 1990": ("times", field("newest_timestamp", 1.0)),
    "a clock in two hours": ("times", entry("clock", NOW + 7200)),
    "a clock ahead of its samples": ("eg", entry("clock", 500_000.0)),
    "a code's scale": ("codes", entry("scale", 1e-10)),
    "a prior that counts next to nothing": ("young", entry("prior_strength", 1e-308)),
    "a prior mean that counts next to nothing": ("young", entry("prior_mean_count", 1e-308)),
    "labels beyond counting": ("paper", entry("threshold_labels", 2**63 - 1)),
    "a first seq below zero": ("times", lambda outer, engine, arrays: engine["meta"].update(first_seq=-5)),
}


async def exported(service: Service, name: str) -> bytes:
    config = CONFIGS[name]
    await service.accepted("PUT", f"/streams/{name}", json=config)
    life = Life(1, 0, DetectorConfig(**config))
    life.missing, life.edges, life.unit, life.twins = 0.0, 0.0, 1.0, False
    await service.observe(life.values(200).tolist(), name, timestamps=[NOW] * 200)
    return await service.export(name)


@pytest.mark.parametrize("mutant", MUTANTS)
async def test_a_tampered_export_is_refused_and_changes_nothing(mutant):
    """Each was taken once, and failed at the next sample, or after the next restart."""
    name, change = MUTANTS[mutant]
    async with Service() as service:
        body = await exported(service, name)
        outer, payload = apart(body)
        engine, numbers = apart(payload)
        arrays = arrays_of(engine, numbers)
        change(outer, engine, arrays)
        inner = sealed(engine, b"".join(array.tobytes() for array in arrays.values()))
        outer["arrays"] = [["engine", "|u1", [len(inner)]]]
        tampered = sealed(outer, inner)
        assert tampered != body
        for stream in (name, "other"):
            problem = await service.refused(
                "PUT", f"/streams/{stream}/import", 422, "invalid_snapshot", content=tampered, headers=BYTES
            )
            assert problem["detail"]
        assert await service.export(name) == body
        await service.refused("GET", "/streams/other", 404, "unknown_stream")
        await service.accepted("PUT", f"/streams/{name}/import", content=body, headers=BYTES)


def twice_inside(outer: dict[str, Any], engine: dict[str, Any], payload: bytes) -> bytes:
    """Name the first array of the engine twice."""
    _, code, shape = engine["arrays"][0]
    size = np.dtype(code).itemsize * int(np.prod(shape))
    inner = sealed(engine | {"arrays": [engine["arrays"][0], *engine["arrays"]]}, payload[:size] + payload)
    return sealed(outer | {"arrays": [["engine", "|u1", [len(inner)]]]}, inner)


def twice_outside(outer: dict[str, Any], engine: dict[str, Any], payload: bytes) -> bytes:
    inner = sealed(engine, payload)
    return sealed(outer | {"arrays": [["engine", "|u1", [len(inner)]]] * 2}, inner * 2)


@pytest.mark.parametrize("double", [twice_inside, twice_outside])
async def test_an_array_is_named_once(double):
    async with Service() as service:
        outer, payload = apart(await exported(service, "paper"))
        body = double(outer, *apart(payload))
        problem = await service.refused(
            "PUT", "/streams/s/import", 422, "invalid_snapshot", content=body, headers=BYTES
        )
        assert "names an array twice" in problem["detail"]
