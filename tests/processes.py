"""Programs run as processes of their own, for any test that needs one."""

import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import RedisError


def find_program(name: str) -> str:
    """Give a program of the system, or skip the test."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if program is None:
        pytest.skip(f"{name} is not installed")
    return program


# below the ports that the kernel gives to connections: one of those could take a server's place while it restarts; the
# port of a cluster's bus, higher by 10,000, is below them too, and is no port of this range
PORTS = range(10_240, 20_000)
# not from the seed that hypothesis sets, which is the same in every worker
untried = iter(random.SystemRandom().sample(PORTS, len(PORTS)))


def find_free_port() -> int:
    """Give a port that nothing listens on now, and that was not given before."""
    return next(port for port in untried if not is_listening(port))


def is_listening(port: int) -> bool:
    """Tell whether anything listens on a port of loopback."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Look until something is so."""
    end = time.monotonic() + seconds
    while not holds(is_so):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


def holds(is_so: Callable[[], bool]) -> bool:
    try:
        return is_so()
    except RedisError:
        return False


@contextmanager
def running(
    command: list[str],
    said: Path,
    is_ready: Callable[[], bool],
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> Iterator[None]:
    """Run a program from when it is ready to the end of the block; what it says goes to a file."""
    with said.open("wb") as file:
        process = subprocess.Popen(command, cwd=said.parent, env=environment, stdout=file, stderr=file)

    def is_up() -> bool:
        assert process.poll() is None, said.read_text()
        return is_ready()

    try:
        wait_until(is_up, seconds)
        yield
    finally:
        process.kill()
        process.wait()


class Restartable:
    """A process that can be killed, stopped for a while, and started again by its subclass."""

    _process: Any = None
    """A Popen, or what can be used like one."""

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
