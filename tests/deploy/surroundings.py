"""What stands around the workers: HAProxy, Redis with its exporter, Alertmanager, as deploy/ configures them."""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.integration.proxy import FILES
from tests.processes import find_free_port, find_program, is_listening, running

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTMANAGER = "prometheus-alertmanager"
REDIS_EXPORTER = "prometheus-redis-exporter"


class Surroundings:
    """Starts them on free ports of loopback, until a stack of contexts is left; each gives the address to ask."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def _run(self, program: str, words: list[str], port: int, **variables: str) -> str:
        said = self._folder / f"{program}-{port}.txt"
        environ = {"PATH": os.environ["PATH"]} | variables
        ready = partial(is_listening, port)
        self._stack.enter_context(running([find_program(program), *words], said, ready, environment=environ))
        return f"127.0.0.1:{port}"

    def haproxy(self, worker: str) -> tuple[str, str]:
        """Start HAProxy with one worker in all places; give the URL for clients, and the address of its metrics."""
        port, metrics = find_free_port(), find_free_port()
        places = {f"ITAN_WORKER_{number}": worker for number in (1, 2, 3)}
        places |= {"ITAN_LISTEN": f"127.0.0.1:{port}", "ITAN_METRICS_LISTEN": f"127.0.0.1:{metrics}"}
        self._run("haproxy", ["-db", *(word for path in FILES for word in ("-f", str(path)))], port, **places)
        return f"http://127.0.0.1:{port}", f"127.0.0.1:{metrics}"

    def redis(self) -> str:
        """Start a Redis, a replica of it and its exporter."""
        primary = self._redis_server("--appendonly", "yes", "--maxmemory", "64mb")
        self._redis_server("--replicaof", *primary.split(":"))
        port = find_free_port()
        words = ["--redis.addr", f"redis://{primary}", "--web.listen-address", f"127.0.0.1:{port}"]
        return self._run(REDIS_EXPORTER, words, port)

    def _redis_server(self, *words: str) -> str:
        port = find_free_port()
        folder = self._folder / f"redis-{port}"
        folder.mkdir()
        return self._run("redis-server", ["--port", str(port), "--dir", str(folder), *words], port)

    def alertmanager(self) -> str:
        """Start Alertmanager."""
        port = find_free_port()
        words = [f"--config.file={DEPLOY / 'alertmanager' / 'alertmanager.yml'}", "--cluster.listen-address="]
        words += [f"--storage.path={self._folder / 'alertmanager'}", f"--web.listen-address=127.0.0.1:{port}"]
        return self._run(ALERTMANAGER, words, port)
