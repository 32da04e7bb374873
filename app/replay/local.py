"""A temporary service on a free port of this machine."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STOP_SECONDS = 30
GREETING = "itan serves "
# settings that would lock out this process's own client
HINDRANCES = {"ITAN_API_KEYS", "ITAN_HOST", "ITAN_PORT", "ITAN_STORE"}


class NotStarted(RuntimeError):
    """The service ended before it served; the message is its last line."""


@contextmanager
def local_service(store: str | None = None, port: int = 0) -> Iterator[str]:
    """Serve on loopback, on a free port, and give the address; without a store nothing is kept at the end."""
    with tempfile.TemporaryDirectory(prefix="itan-") as folder:
        errors = Path(folder, "stderr")
        process = _start(store or f"sqlite:///{folder}/itan.db", port, errors)
        try:
            yield _address(process, errors)
        finally:
            _stop(process)


def _start(store: str, port: int, errors: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--log-level", "warning"]
    environment = {name: value for name, value in os.environ.items() if name not in HINDRANCES}
    with errors.open("wb") as stderr:
        # a session of its own: Ctrl-C ends the replay, which then ends the service
        return subprocess.Popen(  # noqa: S603 - this very program
            [*command, "--port", str(port), "--store", store],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )


def _address(process: subprocess.Popen[str], errors: Path) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith(GREETING):
        process.wait()
        said = errors.read_text(errors="replace").strip().splitlines()
        raise NotStarted(said[-1] if said else f"it ended with code {process.returncode}")
    return line.removeprefix(GREETING).strip()


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
