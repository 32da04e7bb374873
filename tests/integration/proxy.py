"""HAProxy as deploy/ configures it, before three workers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import find_free_port, find_program, is_listening, running

FOLDER = Path(__file__).parents[2] / "deploy" / "haproxy"
FILES = [FOLDER / "haproxy.cfg", FOLDER / "workers.cfg"]


@contextmanager
def proxy(workers: list[str], folder: Path) -> Iterator[str]:
    """Run HAProxy before workers, and give its address."""
    port = find_free_port()
    addresses = {f"ITAN_WORKER_{n}": url.removeprefix("http://") for n, url in enumerate(workers, 1)}
    addresses |= {"ITAN_LISTEN": f"127.0.0.1:{port}", "ITAN_METRICS_LISTEN": f"127.0.0.1:{find_free_port()}"}
    command = [find_program("haproxy"), "-db", *(word for path in FILES for word in ("-f", str(path)))]
    with running(command, folder / "haproxy.txt", lambda: is_listening(port), environment=os.environ | addresses):
        yield f"http://127.0.0.1:{port}"
