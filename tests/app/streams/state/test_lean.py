"""A process that only computes with streams loads no server."""

import subprocess
import sys

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
LOADED = "import sys, app.streams.state.state; print(*{name.partition('.')[0] for name in sys.modules})"


def test_the_state_of_a_stream_loads_no_server():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert not SERVERS & set(done.stdout.split())
