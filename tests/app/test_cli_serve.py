"""`itan serve` as a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.forks import Fork

GREETING = "itan serves "
SERVE = [sys.executable, "-m", "app.cli", "serve"]
MAIN = """
import os, sys, types
def create_app(settings):
    print("numpy" in sys.modules, os.environ["OPENBLAS_NUM_THREADS"], os.environ["OMP_NUM_THREADS"])
    raise ValueError("enough seen")
sys.modules["app.main"] = types.ModuleType("app.main")
sys.modules["app.main"].create_app = create_app
from app.cli import app
app(["serve"])
"""
STOPPED = """
import os, signal, sys, types
class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
def create_app(settings):
    Callback()
    print("goes on")
    raise ValueError("still there")
sys.modules["app.main"] = types.ModuleType("app.main")
sys.modules["app.main"].create_app = create_app
from app.cli import app
app(["serve"])
"""
DRAINING = """
import os, signal
from app.protocol import Server
_serve = Server._serve
async def told(self, sockets=None):
    os.kill(os.getpid(), signal.SIGTERM)
    await _serve(self, sockets)
Server._serve = told
from app.cli import app
app(["serve", "--port", "0", "--store", "memory://", "--log-level", "error"])
"""
FROZEN = """
import gc
from app.protocol import Server
async def main_loop(self):
    print(gc.get_freeze_count() > 50_000)
Server.main_loop = main_loop
from app.cli import app
app(["serve", "--port", "0", "--store", "memory://", "--log-level", "error"])
"""


def environment(**settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ITAN_")}
    kept.pop("OPENBLAS_NUM_THREADS", None)
    return kept | settings


@contextmanager
def serving(*flags: str, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a service and give its address."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*SERVE, "--port", "0", *flags], env=environment(**settings), stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(GREETING)
            yield process, line.removeprefix(GREETING).strip()
        finally:
            process.kill()


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """Run a service that cannot start, and give the one line that it says."""

    def run(*flags: str, code: int = 2, **settings: str) -> str:
        said = tmp_path / "said.txt"
        process = Fork(["serve", *flags], environment(**settings), said)
        assert process.communicate(timeout=60) == b""
        line = said.read_text()
        assert process.returncode == code, line
        assert len(line.splitlines()) == 1
        return line

    return run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_picks_a_port_says_so_serves_and_ends_cleanly(number: signal.Signals) -> None:
    with serving("--store", "memory://") as (process, url):
        assert json.loads(get(url + "/livez"))["status"] == "alive"
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr is not None
        said = process.stderr.read()
    assert "GET /livez" not in said
    assert "Traceback" not in said


def test_an_idle_connection_does_not_hold_up_the_end() -> None:
    with serving("--store", "memory://", "--log-level", "error") as (process, url):
        host, _, port = url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port))) as idle:
            idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert idle.recv(100).startswith(b"HTTP/1.1 200")
            process.terminate()
            assert process.wait(30) == 0


def test_a_request_that_does_not_come_to_its_end_is_told_why() -> None:
    with serving("--store", "memory://", "--log-level", "warning", ITAN_SHUTDOWN_SECONDS="1") as (process, address):
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            head = b"POST /observe?stream=s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b"Content-Length: 20\r\n\r\n{")
            get(f"{address}/livez")
            process.send_signal(signal.SIGTERM)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 503")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "stopping"
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert "Exception in ASGI application" not in process.stderr.read()


def test_flags_win_over_the_environment(tmp_path: Path) -> None:
    flag, variable = tmp_path / "flag.db", tmp_path / "variable.db"
    settings = {"ITAN_STORE": f"sqlite:///{variable}", "ITAN_HOST": "192.0.2.1"}
    with serving("--store", f"sqlite:///{flag}", "--host", "127.0.0.1", **settings) as (_, url):
        get(url + "/readyz")
    assert flag.exists()
    assert not variable.exists()


def test_without_flags_the_environment_counts(tmp_path: Path) -> None:
    with serving(ITAN_STORE=f"sqlite:///{tmp_path}/variable.db") as (_, url):
        get(url + "/readyz")
    assert (tmp_path / "variable.db").exists()


def test_letting_everybody_in_is_refused(refused: Callable[..., str]) -> None:
    assert "ITAN_API_KEYS" in refused("--host", "0.0.0.0")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"ITAN_PORT": "99999"}, "ITAN_PORT: Input should be less than or equal to 65535"),
        ({"ITAN_SHUTDOWN_SECONDS": "soon"}, "ITAN_SHUTDOWN_SECONDS: Input"),
        ({"ITAN_STORE": "ftp://x/y"}, "ftp"),
        ({"ITAN_LOG_LEVEL": "loud"}, "ITAN_LOG_LEVEL: Input should be 'debug'"),
        ({"ITAN_API_KEYS": "hush,se cret"}, "ITAN_API_KEYS, entry 2"),
    ],
)
def test_a_bad_setting_is_named_on_one_line(refused: Callable[..., str], settings: dict[str, str], named: str) -> None:
    line = refused(**settings)
    assert line.startswith("itan: ")
    assert named in line
    assert "hush" not in line
    assert "cret" not in line


def test_a_bad_flag_is_named_as_a_flag(refused: Callable[..., str]) -> None:
    assert refused("--port", "99999", ITAN_PORT="8000").startswith("itan: --port: Input should be less than")


def test_a_port_that_is_taken_is_named(refused: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--port", str(port), "--store", "memory://", code=1)
    assert line == f"itan: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_a_store_that_cannot_be_opened_is_said_on_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/no/such/folder/itan.db"
    assert refused("--port", "0", "--store", store, "--log-level", "error", code=1).startswith("itan: ")


@pytest.mark.parametrize(("settings", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_the_number_of_threads_is_set_before_numpy_is_there(settings: dict[str, str], threads: str) -> None:
    done = subprocess.run([sys.executable, "-c", MAIN], env=environment(**settings), capture_output=True, text=True)
    assert done.stdout == f"False {threads} 1\n"
    assert done.stderr == "itan: enough seen\n"


@pytest.mark.parametrize("program", [STOPPED, DRAINING], ids=["while it imports", "before it listens"])
def test_it_can_be_told_to_stop_while_it_starts(program: str) -> None:
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=environment(ITAN_DRAIN_SECONDS="0.1"), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "goes on" not in done.stdout


def test_the_garbage_collector_leaves_alone_what_is_there_from_the_start() -> None:
    done = subprocess.run([sys.executable, "-c", FROZEN], env=environment(), capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[1:] == ["True"], done.stderr


def test_a_misspelt_setting_is_warned_of():
    with serving("--store", "memory://", ITAN_API_KEY="k1") as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert "ITAN_API_KEY is not a setting" in process.stderr.read()


@pytest.mark.parametrize("flags", [(), ("--log-level", "debug")])
def test_all_that_is_said_on_stderr_is_json(flags: tuple[str, ...]) -> None:
    with serving("--store", "memory://", *flags, ITAN_WORKER="w1", PYTHONWARNINGS="always") as (process, url):
        host, _, port = url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port))) as rude:
            rude.sendall(b"rubbish\r\n\r\n")
            assert rude.recv(100).startswith(b"HTTP/1.1 400")
        get(url + "/livez")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr]
    assert all(line["worker"] == "w1" for line in lines)
    events = [line["event"] for line in lines]
    assert "closed 1 connections: a client did not send HTTP" in events
    assert events.count("request") == len(flags) // 2
    assert not [line for line in lines if line.get("logger") == "py.warnings"]


def test_the_console_is_for_people() -> None:
    with serving("--store", "memory://", ITAN_LOG_FORMAT="console") as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert " info    Application startup complete." in process.stderr.read()
