"""The profile `scale` on this machine: commands, environments and files of docker-compose.yml, at other addresses."""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

from ruamel.yaml import YAML

from tests.deploy import dockerfile
from tests.deploy.compose import ROOT, environment, mounts, read_services
from tests.deploy.surroundings import ALERTMANAGER, REDIS_EXPORTER
from tests.processes import find_free_port, find_program, is_listening, running

WORKERS = ("itan", "itan-2", "itan-3")
PLACES = {"redis": 6379, "itan": 8000, "itan-2": 8000, "itan-3": 8000, "haproxy": 8405, "*": 8080, "localhost": 9090}
PLACES |= {"redis-exporter": 9121, "alertmanager": 9093}


class Topology:
    """Redis, three workers, HAProxy and what watches them; each place of the files is a free port of loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._services = read_services()
        self._stack = ExitStack()
        self.ports = {f"{name}:{port}": find_free_port() for name, port in PLACES.items()}
        self.ports["*:8405"] = self.ports["haproxy:8405"]
        self.url = f"http://{self._here('*:8080')}"
        self.prometheus_url = f"http://{self._here('localhost:9090')}"

    def __enter__(self) -> Self:
        with self._stack:
            self._start_redis()
            for name in WORKERS:
                self._start_worker(name)
            self._start_haproxy()
            self._start_redis_exporter()
            self._start_alertmanager()
            self._start_prometheus()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _here(self, place: str) -> str:
        return f"127.0.0.1:{self.ports[place]}"

    def _moved(self, text: str) -> str:
        """Put the addresses of this machine in the place of those of the files."""
        places = "|".join(re.escape(place) for place in sorted(self.ports, key=len, reverse=True))
        return re.sub(rf"(?<![\w-])(?:{places})(?!\d)", lambda found: self._here(found[0]), text)

    def _run(self, name: str, command: list[str], place: str, **variables: str) -> None:
        """Start a process, and return once it listens; what it says is kept in a file of its name."""
        environ = {"PATH": os.environ["PATH"]} | variables
        is_ready = partial(is_listening, self.ports[place])
        said = self._folder / f"{name}.txt"
        self._stack.enter_context(running(command, said, is_ready, environment=environ, seconds=60))

    def is_healthy(self, name: str) -> bool:
        """Check as Docker does, but at the port of this run."""
        check = self._services[name]["healthcheck"]["test"]
        place = "localhost" if name == "prometheus" else name
        port = self.ports[f"{place}:{PLACES[place]}"]
        words = [re.sub(r"(?<=127\.0\.0\.1[:/])\d+", str(port), word) for word in check[1:]]
        return subprocess.run(words, capture_output=True, timeout=10).returncode == 0

    def said(self, name: str) -> str:
        """Give what a process has said."""
        return (self._folder / f"{name}.txt").read_text()

    def _start_redis(self) -> None:
        _, *flags = self._services["redis"]["command"]
        address = ["--bind", "127.0.0.1", "--port", str(self.ports["redis:6379"]), "--dir", str(self._folder)]
        self._run("redis", [find_program("redis-server"), *flags, *address], "redis:6379")

    def _start_worker(self, name: str) -> None:
        steps = [step for step in dockerfile.read_dockerfile(ROOT / "Dockerfile") if step.verb in ("ENV", "CMD")]
        _, *words = steps[-1].exec_form
        given = dockerfile.environment(steps, steps[-1].stage) | environment(self._services[name])
        host, port = self._here(f"{name}:8000").split(":")
        service = self._services[name]
        variables = {key: self._moved(mounted(value, service)) for key, value in given.items() if key != "PATH"}
        variables |= {"ITAN_HOST": host, "ITAN_PORT": port, "PYTHONPATH": str(ROOT)}
        self._run(name, [sys.executable, "-m", "app.cli", *words], f"{name}:8000", **variables)

    def _start_haproxy(self) -> None:
        service = self._services["haproxy"]
        command = [find_program("haproxy"), "-db", *(mounted(word, service) for word in service["command"][1:])]
        variables = {name: self._moved(value) for name, value in environment(service).items()}
        self._run("haproxy", command, "*:8080", **variables)

    def _start_redis_exporter(self) -> None:
        flags = [self._moved(word) for word in self._services["redis-exporter"]["command"]]
        command = [find_program(REDIS_EXPORTER), *flags, f"--web.listen-address={self._here('redis-exporter:9121')}"]
        self._run("redis-exporter", command, "redis-exporter:9121")

    def _start_alertmanager(self) -> None:
        flags = self._flags("alertmanager", "/alertmanager")
        command = [find_program(ALERTMANAGER), *flags, f"--web.listen-address={self._here('alertmanager:9093')}"]
        self._run("alertmanager", command, "alertmanager:9093")

    def _flags(self, name: str, data: str) -> list[str]:
        """Give the flags of a command, with files where they lie and its data in the folder of this run."""
        service = self._services[name]
        words = [mounted(word, service) for word in service["command"]]
        return [word.replace(f"={data}", f"={self._folder}{data}") for word in words]

    def _start_prometheus(self) -> None:
        config, *flags = self._flags("prometheus", "/prometheus")
        config = config.partition("=")[2]
        own = self._folder / "prometheus.yml"
        YAML(typ="safe").dump(self._moved_config(Path(config)), own)
        address = f"--web.listen-address={self._here('localhost:9090')}"
        command = [find_program("prometheus"), f"--config.file={own}", *flags, address]
        self._run("prometheus", command, "localhost:9090")

    def _moved_config(self, path: Path) -> dict[str, Any]:
        """Give Prometheus' configuration with rules where they lie and a known address for each name."""
        config: dict[str, Any] = YAML(typ="safe").load(path)
        config["rule_files"] = [str(path.parent / pattern) for pattern in config["rule_files"]]
        config["global"] |= {"scrape_interval": "2s", "scrape_timeout": "2s"}
        for job in (*config["scrape_configs"], *config["alerting"]["alertmanagers"]):
            looked_up = job.pop("dns_sd_configs", [])
            named = [f"{name}:{lookup['port']}" for lookup in looked_up for name in lookup["names"]]
            job.setdefault("static_configs", []).extend([{"targets": [place]} for place in named])
        moved: dict[str, Any] = json.loads(self._moved(json.dumps(config)))
        return moved


def mounted(word: str, service: dict[str, Any]) -> str:
    """Put the repository's folders in the place of those that a container sees."""
    for place, folder in mounts(service).items():
        word = word.replace(place, str(folder))
    return word
