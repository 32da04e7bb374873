"""HAProxy as deploy/ configures it, before three workers."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.servers import find_free_port, is_listening, wait_until

CONFIG = Path(__file__).parents[2] / "deploy" / "haproxy" / "haproxy.cfg"


def find_haproxy() -> str:
    """Give the program, or skip the test."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        pytest.skip("haproxy is not installed")
    return program


class Proxy:
    """A running HAProxy."""

    def __init__(self, workers: list[str], folder: Path) -> None:
        self._program = find_haproxy()
        self._port = find_free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        addresses = {f"ITAN_WORKER_{n}": url.removeprefix("http://") for n, url in enumerate(workers, 1)}
        addresses |= {"ITAN_LISTEN": f"127.0.0.1:{self._port}", "ITAN_METRICS_LISTEN": f"127.0.0.1:{find_free_port()}"}
        self._environment = os.environ | addresses
        self._said = folder / "haproxy.txt"

    def __enter__(self) -> Self:
        with self._said.open("wb") as said:
            command = [self._program, "-db", "-f", str(CONFIG)]
            self._process = subprocess.Popen(command, env=self._environment, stdout=said, stderr=said)
        wait_until(self._listens)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _listens(self) -> bool:
        assert self._process.poll() is None, self._said.read_text()
        return is_listening(self._port)
