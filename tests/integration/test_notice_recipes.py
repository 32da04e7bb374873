"""The recipes of docs/notices.md, by its own text: chats get their form, and Grafana its annotations."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from app.cli import app
from itan_client import Client
from tests.app.incidents import ordinary, outage
from tests.integration.process import ServiceProcess

PAGE = (Path(__file__).parents[2] / "docs" / "notices.md").read_text()
[SCRIPT] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CHATS = re.findall(r"^\| \S+ \| `https://[^/]+(/\S+)`", PAGE, re.MULTILINE)
TOKEN = "glsa_recipe"


class Receiver(ThreadingHTTPServer):
    """Takes what chats take, and annotations as Grafana documents it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[tuple[str, dict[str, Any]]] = []
        self.annotations: dict[int, dict[str, Any]] = {}
        self.n_changes = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.read()
        if self.path != "/api/annotations":
            self.server.posted.append((self.path, body))
            self.answer({})
            return
        self.check(body)
        number = len(self.server.annotations) + 1
        self.server.annotations[number] = {"id": number, **body}
        self.answer({"message": "Annotation added", "id": number})

    def do_PATCH(self) -> None:
        body = self.read()
        self.check(body)
        self.server.annotations[int(self.path.removeprefix("/api/annotations/"))] |= body
        self.answer({"message": "Annotation patched"})

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        assert address.path == "/api/annotations"
        first, last, tags = int(query["from"][0]), int(query["to"][0]), set(query["tags"])
        assert self.headers["Authorization"] == f"Bearer {TOKEN}"
        found = [
            one
            for one in self.server.annotations.values()
            if tags <= set(one["tags"]) and one["time"] <= last and one["timeEnd"] >= first
        ]
        self.answer(found[: int(query["limit"][0])])

    def check(self, body: dict[str, Any]) -> None:
        """Hold a body to the form of Grafana's HTTP API: epoch milliseconds, a list of tags, a text."""
        assert self.headers["Authorization"] == f"Bearer {TOKEN}"
        assert set(body) == {"time", "timeEnd", "tags", "text"}
        assert {type(body["time"]), type(body["timeEnd"])} == {int}
        assert 1e12 < body["time"] <= body["timeEnd"]
        assert all(type(tag) is str for tag in body["tags"])
        assert body["text"]
        self.server.n_changes += 1

    def read(self) -> dict[str, Any]:
        assert self.headers["Content-Type"] == "application/json"
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return body

    def answer(self, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ServiceProcess("memory://", tmp_path_factory.mktemp("service"), notices_allow_private=True) as running:
        yield running.url


def test_chats_get_a_text_at_the_urls_of_the_page(url: str, receiver: Receiver) -> None:
    assert len(CHATS) == 4
    for path in CHATS:
        rule = json.dumps({"target": "chat", "url": receiver.url + path})
        for words in (["put", "chat", "-"], ["test", "chat"]):
            done = CliRunner().invoke(app, ["rules", *words], input=rule, env={"ITAN_URL": url})
            assert done.exit_code == 0, done.output
    assert [path for path, _ in receiver.posted] == CHATS
    assert all(body == {"text": "A test of the notices of test"} for _, body in receiver.posted)


def test_grafana_gets_each_incident_once_and_its_end(
    url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAFANA_URL", receiver.url)
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)

    def run() -> list[dict[str, Any]]:
        exec(SCRIPT.replace("http://127.0.0.1:8000", url), {"__name__": "recipe"})
        return [one for one in receiver.annotations.values() if one["tags"][1] == "web"]

    with Client(url) as client:
        observed = client.observe("web", [*ordinary(600), *outage(3)])
        opened = next(incident for incident in reversed(observed.incident or []) if incident)
        before = [one for one in run() if "open" in one["tags"]]
        assert len(before) == 1
        assert f"\nweb~{opened}~" in before[0]["text"]
        assert len(run()) == len(receiver.annotations)
        client.observe("web", ordinary(20, seed=1))
        known = len(receiver.annotations)
        [ended] = [one for one in run() if one["id"] == before[0]["id"]]
        assert (ended["tags"], len(receiver.annotations)) == (["itan", "web", "closed"], known)
        n_changes = receiver.n_changes
        run()
        assert receiver.n_changes == n_changes
