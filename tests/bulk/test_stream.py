"""A backfill gives what the service gives for the same samples and labels in this order, and goes on as it would."""

import json
from typing import Any

import numpy as np
import pytest

from app.streams.state.image import Image
from app.streams.state.state import StreamState
from tests.app.harness import NOW, Service
from tests.bulk.samples import BYTES, N, backfilled, job_of, log_of, post, rows_of


def plain(name: str, value: Any) -> Any:
    """Give a value as JSON says it."""
    return None if value != value or (name == "incident" and not value) else value


CASES = {
    "labels known at a time": (job_of(), {}),
    "labels late by samples": (job_of(delay_samples=50, label_every=1), {"known": False, "times": False}),
    "labels late by seconds, time forgets": (
        job_of(delay_seconds=900.0, config={"half_life_seconds": 36000.0, "expected_anomaly_rate": 0.05}),
        {"known": False, "ids": False},
    ),
    "a calendar": (job_of(config={"calendar": {"periods": ["day"], "timezone": "UTC"}}), {}),
}


@pytest.mark.parametrize("case", CASES)
async def test_answers_state_and_what_comes_after_are_those_of_the_service(case):
    job, of_rows = CASES[case]
    rows = rows_of(**of_rows)
    scores, incidents, told = backfilled(job, rows)
    outcomes = json.loads(told["labels"])
    assert outcomes["applied"] == np.count_nonzero(rows.label)
    assert len(incidents["id"]) > 3
    async with Service() as one, Service() as other:
        await one.accepted("PUT", "/streams/s", json=job.config)
        answered = [await post(one, entry) for entry in log_of(told["image"])]
        for name in ("seq", "score", "threshold", "is_anomaly", "ready", "severity", "incident", "event"):
            said = [value for answer in answered if "score" in answer for value in answer[name]]
            mine = [
                None if row[name] != row[name] or (name == "incident" and not row[name]) else row[name]
                for row in scores
            ]
            assert said == mine, name
        state = StreamState.from_bytes(Image.from_bytes(told["image"]).state, log_of(told["image"])[-1].position)
        assert await one.export("s") == state.exported()

        await other.accepted("PUT", "/streams/s/import", content=told["image"], headers=BYTES)
        assert await other.export("s") == await one.export("s")
        found = [(await service.accepted("GET", "/incidents?stream=s"))["incidents"] for service in (one, other)]
        assert found[0] == found[1] != []
        more = rows_of(1, 60)
        late = [{"seq": seq, "anomaly": True} for seq in (1, 40, 333, N)]
        late += [{"id": f"row-{i}", "anomaly": False} for i in (3, 500)] if rows.ids else []
        later = {} if rows.times is None else {"timestamps": (NOW - 30.0 + np.arange(60) / 2).tolist()}
        for service in (one, other):
            service.said = [await service.feedback(*late), await service.observe(np.nan_to_num(more.X), **later)]
            service.said.append(await service.feedback(*late[:2], {"seq": N + 3, "anomaly": False}))
        assert one.said == other.said
        assert set(one.said[0]["outcome"]) <= {"applied", "revised", "duplicate"}
        assert one.said[0]["outcomes"]["applied"] + one.said[0]["outcomes"]["revised"] > 2
        assert await other.export("s") == await one.export("s")
        checked = await other.accepted("GET", "/streams/s/check")
        assert checked["ok"], checked


def test_it_does_not_matter_how_the_rows_arrive():
    rows = rows_of()
    results = [backfilled(job_of(), rows, cuts) for cuts in (1, 7, 64, N)]
    assert all(result[2] == results[0][2] for result in results)
