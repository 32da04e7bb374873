"""What all tests share: markers, timeouts and how much the random tests try.

The markers say what a test needs, or that it takes long; most go by the file, in MARKERS below:

- servers: runs programs as processes of their own (`itan serve`, Valkey, Redis, HAProxy, Prometheus);
- crash: kills them with SIGKILL and looks at what is left;
- browser: drives Chromium or builds the live page with npm;
- spark: runs Spark in a Java of its own, all in one session;
- slow: takes more than some five seconds of CPU.

    uv run pytest                                                        # all, as many at a time as there are cores
    uv run pytest -m "not slow and not servers and not browser"          # the short loop while you work
    uv run pytest tests/core/test_drift.py                               # named files: in one process, unless with -n
    ITAN_TEST_FULL=1 uv run pytest                                       # as CI: random tests try all that they can

A test may take 60 seconds, a marked one 300, and longer where others keep the machine busy when the run begins; a test
that needs other limits has a `timeout` of its own.
"""

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

# before numpy comes: threads of its own would only take the cores from the other workers
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest

from tests.effort import IS_FULL

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# set where everything a test may need is installed: a skip there hides a hole
NO_SKIP = os.environ.get("ITAN_TEST_NO_SKIP") == "1"

TESTS = Path(__file__).parent
MARKERS = {
    "app/api/test_fuzzed.py": ["slow"],
    "app/notices/test_alertmanager.py": ["servers"],
    "app/notices/test_kill.py": ["servers", "crash"],
    "app/notices/test_redis.py": ["servers"],
    "app/streams/changes/test_import_mutants.py": ["slow"],
    "app/streams/test_any_order.py": ["slow"],
    "app/test_cli_ingest.py": ["servers"],
    "app/test_cli_replay.py": ["servers"],
    "app/test_cli_serve.py": ["servers"],
    "app/test_cli_streams.py": ["servers"],
    "app/test_demo.py": ["servers"],
    "app/test_scrape_cost.py": ["slow"],
    "bench/test_ablations.py": ["slow"],
    "bench/test_commands.py": ["slow"],
    "bench/test_experiments.py": ["slow"],
    "browser": ["browser"],
    "client/test_page.py": ["servers"],
    "contract/test_durability.py": ["servers", "crash"],
    "contract/test_redis_connections.py": ["servers"],
    "contract/test_redis_dedicated.py": ["servers"],
    "contract/test_redis_transport.py": ["servers"],
    "contract/test_store_redis.py": ["servers"],
    "deploy/test_compose.py": ["servers"],
    "deploy/test_kubernetes_pods.py": ["servers"],
    "deploy/test_prometheus_queries.py": ["servers"],
    "deploy/test_topology.py": ["servers"],
    "integration": ["servers"],
    "integration/test_backup.py": ["crash"],
    "integration/test_crash.py": ["crash"],
    "integration/test_failover.py": ["crash"],
    "integration/test_haproxy.py": ["crash"],
    "integration/test_rolling_restart.py": ["crash"],
    "integration/test_store_faults.py": ["crash"],
    "integration/test_two_workers.py": ["crash"],
}
"""By file or folder."""
SERVERS = {"valkey", "redis", "sentinel", "cluster"}
"""Parameters that stand for such a server."""
PATIENT = {"servers", "crash", "browser", "slow"}
UNIT_SECONDS, PATIENT_SECONDS = 60, 300

hypothesis.settings.register_profile("small", deadline=None, max_examples=25)
hypothesis.settings.register_profile("full", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("full" if IS_FULL else "small")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run named files in this process, which begins sooner, and what is to be seen as it is printed."""
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    return 0 if is_named or config.option.capture == "no" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test the markers of its file, its folder and its parameters, and the time that they allow."""
    if moved := [place for place in MARKERS if not (TESTS / place).exists()]:
        raise pytest.UsageError(f"MARKERS names what is not there: {moved}")
    times_as_long = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    for item in items:
        for place in places(item.path):
            for name in MARKERS.get(place, []):
                item.add_marker(name)
        if SERVERS & parameters(item):
            item.add_marker("servers")
        if config.getoption("timeout") is None and not item.get_closest_marker("timeout"):
            is_patient = PATIENT & {mark.name for mark in item.iter_markers()}
            item.add_marker(pytest.mark.timeout(times_as_long * (PATIENT_SECONDS if is_patient else UNIT_SECONDS)))


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what is there by now: it would look at it again and again, for nothing."""
    gc.collect()
    gc.freeze()


def places(path: Path) -> list[str]:
    """Give a file below tests/ and the folders that it is in, as MARKERS names them."""
    return [place.relative_to(TESTS).as_posix() for place in (path, *path.parents) if place.is_relative_to(TESTS)]


def parameters(item: pytest.Item) -> set[str]:
    callspec = getattr(item, "callspec", None)
    return {value for value in callspec.params.values() if isinstance(value, str)} if callspec else set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one."""
    return _without_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped file into a failed one."""
    return _without_skip((yield))


def _without_skip(report: Report) -> Report:
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but ITAN_TEST_NO_SKIP=1: {report.longrepr}"
    return report
