"""docker-compose.yml: valid, safe to start, and its Redis is told what keeps state safe."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from app.settings import Settings
from tests.deploy.compose import COMPOSE, environment, mounts, read_services
from tests.processes import find_free_port, find_program

SERVICES = read_services()
WORKERS = ("itan", "itan-2", "itan-3")


def test_it_is_a_valid_compose_file() -> None:
    check = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ports_are_bound_to_loopback_alone() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert "127.0.0.1:8000:8000" in ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_there_is_time_to_stop_before_the_kill() -> None:
    for worker in WORKERS:
        assert int(SERVICES[worker]["stop_grace_period"].removesuffix("s")) > Settings().shutdown_seconds + 3


def test_images_are_pinned() -> None:
    images = [service["image"] for name, service in SERVICES.items() if name not in WORKERS]
    assert all(re.fullmatch(r"[a-z0-9_/]+:v?\d+\.\d+\.\d+(-\w+)?", image) for image in images), images


def test_what_is_mounted_exists() -> None:
    mounted = {place: folder for service in SERVICES.values() for place, folder in mounts(service).items()}
    assert len(mounted) == 7
    assert all(folder.is_dir() and any(folder.iterdir()) for folder in mounted.values())
    home = environment(SERVICES["grafana"])["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (mounted[str(Path(home).parent)] / Path(home).name).is_file()


def test_by_default_one_worker_runs_and_three_behind_the_proxy_where_asked_for() -> None:
    scaled = {name for name, service in SERVICES.items() if service.get("profiles") == ["scale"]}
    assert scaled == {"itan-2", "itan-3", "haproxy"}
    watching = {"redis-exporter", "prometheus", "alertmanager", "grafana"}
    assert set(SERVICES) - scaled == {"itan", "redis"} | watching


def test_workers_differ_by_name_and_address_alone() -> None:
    environments = [environment(SERVICES[worker]) for worker in WORKERS]
    assert [environ.pop("ITAN_WORKER") for environ in environments] == list(WORKERS)
    assert [environ.pop("ITAN_ADVERTISE_URL") for environ in environments] == [
        f"http://{name}:8000" for name in WORKERS
    ]
    assert environments == [environments[0]] * len(WORKERS)


def test_every_service_is_bounded_watched_and_started_again() -> None:
    for name, service in SERVICES.items():
        assert service["restart"] == "unless-stopped"
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}
        assert service["cpus"] > 0
        # the image of the workers has a check of its own; that of the exporter has nothing to check with
        assert ("healthcheck" in service) == (name not in (*WORKERS, "redis-exporter")), name


def test_there_is_memory_for_what_may_be_used() -> None:
    settings = Settings()
    assert megabytes(SERVICES["itan"]["mem_limit"]) > settings.memory_budget_mb + settings.body_budget_mb + 300
    command = SERVICES["redis"]["command"]
    most = megabytes(command[command.index("--maxmemory") + 1].removesuffix("b"))
    assert megabytes(SERVICES["redis"]["mem_limit"]) > 2 * most


def megabytes(size: str) -> int:
    return int(size[:-1]) * {"m": 1, "g": 1024}[size[-1]]


def test_workers_are_confined_and_the_store_is_theirs_alone() -> None:
    for worker in WORKERS:
        assert SERVICES[worker]["read_only"] is True
        assert SERVICES[worker]["cap_drop"] == ["ALL"]
    near_the_store = {name for name, service in SERVICES.items() if "state" in service.get("networks", [])}
    assert near_the_store == {"redis", "redis-exporter", *WORKERS}
    assert SERVICES["redis"]["networks"] == ["state"]


def test_nobody_can_sign_in_to_grafana() -> None:
    given = environment(SERVICES["grafana"])
    assert given["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert given["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert (given["GF_AUTH_DISABLE_LOGIN_FORM"], given["GF_AUTH_BASIC_ENABLED"]) == ("true", "false")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[redis.Redis]:
    """Run Redis by the very command of the file, in a folder of its own."""
    port = find_free_port()
    place = ["--port", str(port), "--dir", str(tmp_path)]
    command = [find_program("redis-server"), *SERVICES["redis"]["command"][1:], *place]
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
