"""`itan ingest` and `itan sources` against a real service."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from itan_client import Client
from tests.integration.process import ServiceProcess

SOURCE = {"stream": "{host}", "features": ["*"], "ignore": ["host"]}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("service")
    with ServiceProcess("memory://", folder, max_batch_samples=50) as running:
        yield running.url


def itan(url: str, *words: str, code: int = 0, given: bytes | None = None) -> Result:
    done = CliRunner().invoke(app, list(words), input=given, env={"ITAN_URL": url})
    assert done.exit_code == code, done.output
    return done


def records(stream: str, n: int) -> list[dict[str, object]]:
    return [{"stream": stream, "sample": {"a": place % 7, "b": 1.5}} for place in range(n)]


def lines(given: list[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in given)


def test_a_file_is_sent_in_requests_that_the_service_takes(url: str, tmp_path: Path) -> None:
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(lines(records("file", 120))))
    done = itan(url, "ingest", str(tmp_path / "records.jsonl.gz"))
    assert done.stdout == "120 records: 120 taken, 0 refused, 0 flagged\n"
    with Client(url) as client:
        history = client.history("file", values=True)
    assert history.seq == list(range(1, 121))
    assert [row[0] for row in history.values or []] == [place % 7 for place in range(120)]
    assert len(set(history.id) - {None}) == 120


def test_an_array_from_stdin_keeps_the_ids_that_it_has(url: str) -> None:
    given = [record | {"id": f"own-{place}"} for place, record in enumerate(records("array", 5))]
    text = json.dumps(given, indent=2).encode()
    for _ in range(2):
        assert itan(url, "ingest", "-", given=text).stdout.startswith("5 records: 5 taken")
    with Client(url) as client:
        assert client.history("array").id == [f"own-{place}" for place in range(5)]


def test_each_refused_record_is_told_by_its_line(url: str) -> None:
    text = (
        lines(records("lines", 2)) + b'\n{"stream": "lines", "sample": {"a": 1}}\nnonsense\n' + lines(records("!", 1))
    )
    done = itan(url, "ingest", "-", given=text, code=1)
    assert done.stdout == "5 records: 2 taken, 3 refused, 0 flagged\n"
    said = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in said] == ["line 4", "line 5", "line 6"]
    assert [line.rpartition(" ")[2] for line in said] == ["[invalid_samples]", "[invalid_json]", "[invalid_stream_id]"]
    nothing = itan(url, "ingest", "-", given=b"nonsense\n", code=1)
    assert (nothing.stdout, nothing.stderr.count("line 1")) == ("1 record: 0 taken, 1 refused, 0 flagged\n", 1)


def test_what_comes_before_bad_input_is_sent(url: str) -> None:
    text = json.dumps(records("before", 3)).encode().removesuffix(b"]") + b", oops]"
    done = itan(url, "ingest", "-", given=text, code=2)
    assert done.stderr == "itan: line 1: no JSON record: 'oops]'\n"
    with Client(url) as client:
        assert client.get("before").n_seen == 3


def test_sources_are_put_shown_listed_used_and_deleted(url: str, tmp_path: Path) -> None:
    (tmp_path / "source.json").write_text(json.dumps(SOURCE))
    kept = json.loads(itan(url, "sources", "put", "mine", str(tmp_path / "source.json")).stdout)
    assert kept == json.loads(itan(url, "sources", "show", "mine").stdout)
    assert (kept["stream"], kept["is_preset"]) == ("{host}", False)
    assert {"mine", "telegraf"} <= set(itan(url, "sources", "list").stdout.split())
    given = b'{"host": "sourced", "x": 1}\n{"host": "sourced", "x": "text"}\n{"x": 3}\n'
    done = itan(url, "ingest", "-", "--source", "mine", given=given, code=1)
    assert done.stdout.startswith("3 records: 1 taken, 2 refused")
    itan(url, "sources", "delete", "mine")
    assert "[404 unknown_source]" in itan(url, "sources", "show", "mine", code=1).stderr
    assert "[404 unknown_source]" in itan(url, "ingest", "-", "--source", "mine", given=given, code=1).stderr


@pytest.mark.parametrize("text", ["nonsense", "[1]"])
def test_a_source_that_is_no_object_is_refused_here(url: str, text: str) -> None:
    assert itan(url, "sources", "put", "mine", "-", given=text.encode(), code=2).stderr.startswith("itan: - ")


def test_an_unreachable_service_is_told_with_the_line_to_go_on_from() -> None:
    words = ("ingest", "-", "--retry-seconds", "0")
    done = itan("http://127.0.0.1:1", *words, given=lines(records("s", 3)), code=1)
    assert done.stderr.startswith("itan: after line 0: no answer from http://127.0.0.1:1")
    assert done.stderr.count("itan:") == 1


def test_a_pipe_is_sent_as_it_comes_and_stopped_by_a_signal(url: str) -> None:
    command = [sys.executable, "-m", "app.cli", "ingest", "-"]
    environ = {**os.environ, "ITAN_URL": url}
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True) as process,
        Client(url) as client,
    ):
        assert process.stdin is not None
        process.stdin.write(lines(records("pipe", 2)).decode())
        process.stdin.flush()
        while "pipe" not in client.streams():
            pass
        process.terminate()
        assert process.wait(30) == 130
        assert process.stdout is not None
        assert process.stdout.read() == "2 records: 2 taken, 0 refused, 0 flagged\n"
