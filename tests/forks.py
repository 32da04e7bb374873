"""`itan` in a process that was forked from one that has imported it: most of the time of a start goes into imports."""

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
# this module imports little: each fork imports it
CONTEXT.set_forkserver_preload(["app.cli", "app.main", "app.protocol", "app.storage.redis", "app.storage.sqlite"])


class Fork:
    """A process that runs `itan`, to be used like a Popen, with stdout in a pipe and stderr in a file."""

    def __init__(self, words: list[str], environment: Mapping[str, str], said: Path, files: int | None = None) -> None:
        self._own_end, other_end = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=run, args=(words, dict(environment), str(said), files, other_end))
        self._process.start()
        other_end.close()
        self.stdout = os.fdopen(os.dup(self._own_end.fileno()), "rb")
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, timeout: float | None = None) -> bytes:
        """Wait for its end, and give what it had still to say on stdout."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} has not ended after {timeout} s")
        with self.stdout, self._own_end:
            return self.stdout.read()


def run(words: list[str], environment: dict[str, str], said: str, files: int | None, stdout: Connection) -> None:
    """Become the command, in the forked process."""
    from app.cli import app

    os.environ.clear()
    os.environ.update(environment)
    if files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    os.dup2(stdout.fileno(), 1)
    stdout.close()
    os.dup2(os.open(said, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    sys.argv = ["itan", *words]
    app(words)
