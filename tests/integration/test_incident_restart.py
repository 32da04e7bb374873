"""A service that is killed in the middle of an incident goes on with it."""

from pathlib import Path

import numpy as np

from core import INCIDENT_EVENTS, Detector, DetectorConfig
from itan_client import Client
from tests.app.incidents import ordinary, outage
from tests.integration.process import ServiceProcess

KILLED_AT = (1003, 1014, 1019)
"""Within the incident, in the calm before it closes, and after that."""


def test_kills_within_an_incident_change_no_answer(tmp_path: Path) -> None:
    rows = [*ordinary(1_000), *outage(12), *ordinary(30, seed=1), *([-30.0, 30.0], [-31.0, 29.0])]
    expected = Detector(DetectorConfig(n_features=2)).observe(np.array(rows))
    said: dict[str, list[object]] = {"score": [], "severity": [], "incident": [], "event": []}
    with ServiceProcess(f"sqlite:///{tmp_path}/itan.db", tmp_path) as service, Client(service.url) as client:
        for start, end in zip((0, *KILLED_AT), (*KILLED_AT, len(rows)), strict=True):
            answer = client.observe("s", rows[start:end])
            for name, column in said.items():
                column += getattr(answer, name)
            service.kill()
            service.start()
        described = client.get("s")
    assert said["incident"] == [incident or None for incident in expected.incident.tolist()]
    assert said["event"] == [INCIDENT_EVENTS[event] or None for event in expected.event.tolist()]
    for name in ("score", "severity"):
        np.testing.assert_array_equal(np.array(said[name], dtype=float), getattr(expected, name))
    assert {"opened", "closed"} <= set(said["event"])
    assert (described.incident, described.replay_mismatches.other) == (1043, 0)
