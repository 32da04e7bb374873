"""Workers as processes, and what they take."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import urlopen

from bench.fleet.load import Address
from bench.fleet.plan import NotMeasured
from bench.servers import cpu_seconds, process

OWN_SETTINGS: Final = {"ITAN_HOST", "ITAN_PORT", "ITAN_STORE", "ITAN_WORKER", "ITAN_API_KEYS", "ITAN_API_KEYS_FILE"}
DEFAULTS: Final = {"ITAN_MEMORY_BUDGET_MB": "1000000"}
"""No stream is closed for room: what it takes to have all of them open is to be seen."""
NO_URL: Final = "a worker did not start: what it said stands above"
COUNTER: Final = re.compile(r"^(itan_\w+_total)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Worker:
    """A process of `itan serve`."""

    name: str
    pid: int
    address: Address

    def cpu_seconds(self) -> float:
        """Give the CPU that it has taken."""
        return cpu_seconds(self.pid)

    def rss_bytes(self) -> int:
        """Give the memory that it takes."""
        _, _, after = Path(f"/proc/{self.pid}/status").read_text().partition("VmRSS:")
        return int(after.split()[0]) * 1024

    def counters(self) -> Mapping[str, float]:
        """Read its counters, each summed over its labels."""
        with urlopen(f"http://{self.address[0]}:{self.address[1]}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        summed: dict[str, float] = {}
        for name, value in COUNTER.findall(text):
            summed[name] = summed.get(name, 0.0) + float(value)
        return summed


@contextmanager
def serving(name: str, store: str) -> Iterator[Worker]:
    """Run a worker under a name, with the settings of the environment; kill it at the end of the block."""
    settings = {key: value for key, value in os.environ.items() if key not in OWN_SETTINGS}
    words = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--log-level", "error", "--store", store]
    with process(words, DEFAULTS | settings | {"ITAN_WORKER": name}) as running:
        assert running.stdout is not None
        line = running.stdout.readline().decode().split()
        if not line:
            raise NotMeasured(NO_URL)
        url = urlsplit(line[-1])
        try:
            yield Worker(name, running.pid, (str(url.hostname), int(url.port or 80)))
        finally:
            running.kill()
