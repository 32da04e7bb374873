"""deploy/kubernetes as far as it runs without a cluster: workers and HAProxy by the environments of their pods."""

import json
import os
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from app.security.grants import digest_of
from tests.deploy import dockerfile
from tests.deploy.compose import ROOT
from tests.deploy.kubernetes import FLEETS, build, container, environment, named, pod
from tests.deploy.names import Names
from tests.integration.proxy import proxy
from tests.processes import find_free_port, find_program, is_listening, running, wait_until

STREAMS = [f"pump-{number}" for number in range(40)]


# the settings of managed-redis are those of redis but for the URL
@pytest.mark.parametrize("overlay", ["redis", "single"])
def test_the_service_starts_as_its_pod_does_and_answers_the_probes(overlay: str, tmp_path: Path) -> None:
    made, steps = build(overlay), dockerfile.read_dockerfile(ROOT / "Dockerfile")
    workers = named(made, "StatefulSet", "itan")
    only = container(workers)
    (command,) = (step for step in steps if step.verb == "CMD")
    given = dockerfile.environment(steps, command.stage) | environment(made, workers)
    mounted = {mount["name"]: mount["mountPath"] for mount in only["volumeMounts"]}
    assert given["ITAN_API_KEYS_FILE"] == f"{mounted['keys']}/keys"
    port = find_free_port()
    own = {
        "ITAN_HOST": "127.0.0.1",
        "ITAN_PORT": str(port),
        "ITAN_API_KEYS_FILE": str(mount_secret(tmp_path / "etc")),
        "ITAN_STORE": "memory://" if overlay in FLEETS else given["ITAN_STORE"].replace(mounted["data"], str(tmp_path)),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
    }
    words = [sys.executable, "-m", "app.cli", *command.exec_form[1:]]
    with running(words, tmp_path / "said.txt", lambda: is_listening(port), environment=given | own):
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert ask(port, only[probe]["httpGet"]["path"])[0] == 200
        assert b"itan_api_keys 1" in ask(port, "/metrics")[1]
    assert (tmp_path / "itan.db").exists() is (overlay not in FLEETS)


def mount_secret(folder: Path) -> Path:
    """Lay a file of keys as the kubelet mounts a secret: it replaces the link to the folder in one step."""
    line = {"name": "ops", "sha256": digest_of("k-ops").hex(), "scopes": ["admin"]}
    (folder / "..2026").mkdir(parents=True)
    (folder / "..2026" / "keys").write_text(json.dumps(line) + "\n")
    (folder / "..data").symlink_to("..2026")
    (folder / "keys").symlink_to("..data/keys")
    return folder / "keys"


def ask(port: int, path: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, answer.read()


class Answering(BaseHTTPRequestHandler):
    """Stands for a worker: the proxy says to which a request went."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def worker(address: str, port: int) -> Iterator[None]:
    with ThreadingHTTPServer((address, port), Answering) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


@contextmanager
def cluster_proxy(names: Names, worker_port: int, folder: Path, overlay: str = "redis") -> Iterator[str]:
    """Run HAProxy by its pod, asking the given name server; it looks more often than in a cluster."""
    made = build(overlay)
    deployment = named(made, "Deployment", "itan-haproxy")
    (volume,) = pod(deployment)["volumes"]
    for name, text in named(made, "ConfigMap", volume["configMap"]["name"])["data"].items():
        asked = text.replace("parse-resolv-conf", f"nameserver own 127.0.0.1:{names.port}")
        (folder / name).write_text(asked.replace("hold valid 5s", "hold valid 100ms"))
    (mount,) = container(deployment)["volumeMounts"]
    _, *words = (word.replace(mount["mountPath"], str(folder)) for word in container(deployment)["args"])
    port, environ = find_free_port(), environment(made, deployment)
    environ["ITAN_WORKERS"] = environ["ITAN_WORKERS"].replace(":8000", f":{worker_port}")
    environ |= {"ITAN_LISTEN": f"127.0.0.1:{port}", "ITAN_METRICS_LISTEN": f"127.0.0.1:{find_free_port()}"}
    # the C library looks first, in vain
    environ["RES_OPTIONS"] = "attempts:1 timeout:1"
    command = [find_program("haproxy"), "-db", *words]
    with running(command, folder / "haproxy.txt", lambda: is_listening(port), environment=environ):
        yield f"http://127.0.0.1:{port}"


def test_streams_go_where_compose_sends_them_and_back_to_a_worker_with_a_new_address(tmp_path: Path) -> None:
    port = find_free_port()
    domain = "itan-workers.default.svc.cluster.local."
    names = Names({f"itan-{number}.{domain}": f"127.0.0.{number + 11}" for number in range(3)})
    with ExitStack() as stack:
        first, second, third = (ExitStack() for _ in range(3))
        for one, address in zip((first, second, third), names.addresses.values(), strict=True):
            stack.enter_context(one).enter_context(worker(address, port))
        stack.enter_context(names)
        composed = stack.enter_context(proxy([f"http://{one}:{port}" for one in names.addresses.values()], tmp_path))
        own = tmp_path / "cluster"
        own.mkdir()
        url = stack.enter_context(cluster_proxy(names, port, own))
        client = stack.enter_context(httpx2.Client(trust_env=False))
        wait_until(lambda: set(routes(client, url).values()) == {"itan-0", "itan-1", "itan-2"})
        placed = routes(client, url)
        assert {stream: name.replace("worker", "") for stream, name in routes(client, composed).items()} == {
            stream: str(int(name[-1]) + 1) for stream, name in placed.items()
        }
        # a pod that starts again has another address
        second.close()
        wait_until(lambda: set(routes(client, url).values()) == {"itan-0", "itan-2"})
        names.addresses[f"itan-1.{domain}"] = "127.0.0.99"
        second.enter_context(worker("127.0.0.99", port))
        wait_until(lambda: routes(client, url) == placed)
        assert client.get(f"{url}/workers/v1/records").status_code == 404
        senders = {sender: ingested(client, url, sender) for sender in ("10.0.0.1", "10.0.0.2", "10.0.0.7, 10.1.0.1")}
        assert all(ingested(client, url, sender) == name for sender, name in senders.items())
        assert len({ingested(client, url, f"10.0.0.{number}") for number in range(20)}) == 3


def routes(client: httpx2.Client, url: str) -> dict[str, str]:
    """Tell to which worker each stream goes; three kinds of requests name it."""
    paths = ("/observe?stream={}", "/streams/{}", "/streams/{}/events")
    found = {}
    for number, stream in enumerate(STREAMS):
        answer = client.get(url + paths[number % 3].format(stream))
        found[stream] = answer.headers.get("x-itan-worker", "")
    return found


def ingested(client: httpx2.Client, url: str, sender: str) -> str:
    return client.get(f"{url}/ingest", headers={"X-Forwarded-For": sender}).headers["x-itan-worker"]
