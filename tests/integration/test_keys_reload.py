"""A running service takes keys from its file as they come and go, and lets go of who watches with one that went."""

import json
from pathlib import Path

import httpx2

from app.security.grants import digest_of
from tests.integration.process import ServiceProcess
from tests.processes import wait_until


def put(path: Path, *keys: str) -> Path:
    lines = [{"name": key, "sha256": digest_of(key).hex(), "scopes": ["admin"]} for key in keys]
    fresh = path.with_suffix(".new")
    fresh.write_text("\n".join(map(json.dumps, lines)))
    fresh.replace(path)
    return path


def test_keys_come_and_go_while_it_runs(tmp_path: Path) -> None:
    path = put(tmp_path / "keys", "old")
    with ServiceProcess("memory://", tmp_path, api_keys_file=path) as running:

        def status(key: str) -> int:
            return httpx2.get(f"{running.url}/streams", headers={"X-API-Key": key}, trust_env=False).status_code

        given = {"headers": {"X-API-Key": "old"}, "trust_env": False}
        samples = {"samples": [[1.0]]}
        assert httpx2.post(f"{running.url}/observe?stream=s", json=samples, **given).status_code == 200
        with httpx2.stream("GET", f"{running.url}/streams/s/events", timeout=30, **given) as watched:
            lines = watched.iter_lines()
            assert next(lines).startswith("retry")
            put(path, "new")
            wait_until(lambda: status("new") == 200)
            assert status("old") == 401
            for _ in lines:  # to the end, which comes by itself
                pass
        path.write_text("{")
        wait_until(lambda: len(httpx2.get(f"{running.url}/readyz", trust_env=False).json()["warnings"]) == 2)
        assert status("new") == 200
        assert "line 1" in running.said()
