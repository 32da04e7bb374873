"""A process that only computes with streams loads no server."""

import subprocess
import sys

import pytest

SERVERS = {
    "fastapi",
    "limits",
    "prometheus_client",
    "pydantic",
    "pydantic_settings",
    "redis",
    "starlette",
    "structlog",
    "uvicorn",
}
LOADED = "import sys, {0}; print(*{{name.partition('.')[0] for name in sys.modules}})"


@pytest.mark.parametrize("module", ["app.streams.state.image", "app.bulk.pool"])
def test_it_loads_no_server(module):
    code = LOADED.format(module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SERVERS & set(done.stdout.split())
