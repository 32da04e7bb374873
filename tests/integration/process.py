"""`itan serve` as a process of its own, to be killed, stopped for a while, and started again at the same address."""

import os
from pathlib import Path
from typing import Self

from tests.forks import Fork
from tests.processes import Restartable, find_free_port

WORDS = ["serve", "--log-level", "error"]


class ServiceProcess(Restartable):
    """One service, that may open so many files; what it says on stderr goes to a file beside the store.

    One that forwards sends records of streams that others hold to these.
    """

    def __init__(
        self, store: str, folder: Path, *, files: int | None = None, forwards: bool = False, **settings: object
    ) -> None:
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ITAN_")}
        settings = {"worker": f"port {self.port}"} | settings
        if forwards:
            settings |= {"advertise_url": self.url, "worker_secret": "the workers of the tests"}
        self._environment = kept | {f"ITAN_{name.upper()}": str(value) for name, value in settings.items()}
        self._words = [*WORDS, "--port", str(self.port), "--store", store]
        self._files = files
        self._said = folder / "said.txt"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start, and return once it serves."""
        self._process = Fork(self._words, self._environment, self._said, self._files)
        assert self._process.stdout.readline().startswith(b"itan serves"), self.said()

    def stop(self) -> int:
        """Ask it to end, and give its exit code."""
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=60)
        code, self._process = int(self._process.returncode), None
        return code

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Give the CPU time that it has taken so far in this life, in all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def said(self) -> str:
        """Give what it said on stderr in all its lives."""
        return self._said.read_text()
