"""docker-compose.yml: valid, and its Redis is told what keeps state safe."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from ruamel.yaml import YAML

from tests.servers import find_free_port, find_redis

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = YAML(typ="safe").load(ROOT / "docker-compose.yml")["services"]


def test_it_is_a_valid_compose_file() -> None:
    check = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(ROOT / "docker-compose.yml")]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ports_are_bound_to_loopback_alone() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8000:8000"]


def test_there_is_time_to_stop_before_the_kill() -> None:
    from app.settings import Settings

    assert int(SERVICES["itan"]["stop_grace_period"].removesuffix("s")) > Settings().shutdown_seconds


@pytest.fixture
def client(tmp_path: Path) -> Iterator[redis.Redis]:
    """Run Redis by the very command of the file, in a folder of its own."""
    port = find_free_port()
    command = [find_redis(), *SERVICES["redis"]["command"][1:], "--port", str(port), "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any("Ready to accept connections" in line for line in process.stdout)
            with redis.Redis(port=port) as client:
                yield client
        finally:
            process.terminate()


def test_redis_keeps_a_log_and_evicts_nothing(client: redis.Redis) -> None:
    settings: dict[str, str] = client.config_get("maxmemory-policy", "appendonly", "appendfsync", "maxmemory")
    assert settings["maxmemory-policy"] == "noeviction"
    assert settings["appendonly"] == "yes"
    assert settings["appendfsync"] == "everysec"
    assert int(settings["maxmemory"]) > 0
