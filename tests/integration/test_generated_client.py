"""A client that a public generator makes of the OpenAPI document works: typed bodies, answers and problems."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.integration.process import ServiceProcess

pytest.importorskip("openapi_python_client", reason="openapi-python-client is not installed")

NAME, KEY = "itan_generated", "all-may"
# the generator knows no lines of JSON: they are sent as a file is
# the generator knows no other types of bodies
BYTES = ("application/x-ndjson", "application/x-protobuf", "text/plain")
SETTINGS = "post_hooks: []\ncontent_type_overrides:\n" + "".join(
    f"  {name}: application/octet-stream\n" for name in BYTES
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess("memory://", tmp_path_factory.mktemp("service"), api_keys=KEY) as running:
        yield running


@pytest.fixture(scope="module")
def generated(service: ServiceProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Generated"]:
    """Generate a client of the running service's document; a warning of the generator is a failure."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "settings.yml").write_text(SETTINGS)
    (folder / "openapi.json").write_bytes(httpx2.get(f"{service.url}/openapi.json").content)
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    command += ["--output-path", NAME, "--config", "settings.yml", "--fail-on-warning"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    made = Generated(service.url, folder)
    try:
        yield made
    finally:
        made.close()
        sys.path.remove(str(folder))


class Generated:
    """The generated package, with a client of it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        self.models = self._module("models")
        client = self._module("client")
        self.client = client.AuthenticatedClient(base_url=url, token=KEY)
        self.stranger = client.AuthenticatedClient(base_url=url, token="nobody's")

    def close(self) -> None:
        """Close the connections."""
        for client in (self.client, self.stranger):
            client.get_httpx_client().close()

    def call(self, operation: str, *path: object, **given: Any) -> Any:
        """Call an operation by its tag and id, and give its typed answer."""
        return self._module(f"api.{operation}").sync(*path, client=self.client, **given)

    def detailed(self, operation: str, *path: object, **given: Any) -> Any:
        """Give the answer with its status."""
        return self._module(f"api.{operation}").sync_detailed(*path, client=self.client, **given)

    def file(self, body: bytes) -> Any:
        """Make a body of bytes."""
        return self._module("types").File(payload=BytesIO(body))

    def _module(self, name: str) -> ModuleType:
        return importlib.import_module(f"{NAME}.{name}")


def test_it_has_every_operation_by_its_name(generated: Generated, service: ServiceProcess) -> None:
    paths = httpx2.get(f"{service.url}/openapi.json").json()["paths"].values()
    described = {operation["operationId"] for methods in paths for operation in methods.values()}
    made = {path.stem for path in (generated.folder / NAME / "api").glob("*/*.py")} - {"__init__"}
    assert made == described


def test_it_leads_a_stream_through_its_life(generated: Generated) -> None:
    models, call = generated.models, generated.call
    latency = models.Feature(name="latency_ms", kind=models.FeatureKind.LOGNORMAL)
    features = [models.Feature(name="cpu"), latency]
    config = models.StreamConfig(features=features, cost_false_positive=0.1)
    assert generated.detailed("streams.create_stream", "web-1", body=config).status_code == 201
    again = generated.detailed("streams.create_stream", "web-1", body=config)
    assert (again.status_code, again.parsed.config.cost_false_positive) == (200, 0.1)

    rng = np.random.default_rng(0)
    rows = [[cpu, latency] for cpu, latency in zip(rng.normal(0.3, 0.05, 80), rng.lognormal(3, 0.1, 80), strict=True)]
    body = models.ObserveBody(samples=rows, ids=[f"req-{k}" for k in range(80)])
    answer = call("samples.observe", body=body, stream="web-1")
    assert answer.seq == list(range(1, 81))
    assert answer.ready[-1]
    flagged = call("samples.observe", body=models.ObserveBody(samples=[[9.0, None]]), stream="web-1", explain=True)
    assert flagged.is_anomaly == [True]
    assert flagged.explanation[0].contributions.additional_properties["cpu"] > 0
    as_bytes = call("samples.observe", body=generated.file(np.array(rows[:2]).tobytes()), stream="web-1")
    assert as_bytes.seq == [82, 83]

    labels = [models.LabelBody(anomaly=True, seq=81), models.LabelBody(anomaly=False, id="req-9")]
    told = call("samples.label", body=models.FeedbackBody(labels=labels), stream="web-1")
    assert told.outcome == ["applied", "applied"]
    assert told.true_alarms == 1

    history = call("watching.get_history", "web-1", from_=80, to=82, values=True)
    assert (history.seq, history.label) == ([80, 81, 82], [None, True, None])
    assert history.values[1] == [9.0, None]
    model = call("density.get_model", stream="web-1")
    assert (model.n_seen, model.nodes[0].id) == (83, 0)
    points = models.DensityBody(points=rows[:3])
    assert len(call("density.get_log_density", body=points, stream="web-1").log_density) == 3
    assert call("watching.get_review_queue", "web-1", limit=5).stream == "web-1"
    assert [one.stream for one in call("streams.list_streams").streams] == ["web-1"]

    exported = generated.detailed("streams.export_stream", "web-1").content
    copied = call("streams.import_stream", "web-2", body=generated.file(exported))
    assert (copied.stream, copied.n_seen) == ("web-2", 83)
    assert generated.detailed("streams.delete_stream", "web-2").status_code == 204


def test_its_problems_are_typed(generated: Generated) -> None:
    models = generated.models
    unknown = generated.call("streams.get_stream", "none")
    assert isinstance(unknown, models.Problem)
    assert (unknown.status, unknown.code, unknown.field, unknown.value) == (404, "unknown_stream", "stream", "none")
    for samples in ([[1.0, 2.0]], [[1.0, 2.0, 3.0]]):
        wrong = generated.call("samples.observe", body=models.ObserveBody(samples=samples), stream="two")
    assert (wrong.code, wrong.errors[0].field) == ("invalid_samples", wrong.field)
    generated.client, owner = generated.stranger, generated.client
    try:
        assert generated.call("streams.get_stream", "web-1").code == "unauthenticated"
    finally:
        generated.client = owner
