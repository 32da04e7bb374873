"""What small requests wait for while hostile clients do their worst, against what they waited for just before.

ITAN_TEST_LOAD_SECONDS=5 runs each load so long; `itan bench hostile` prints a table of all.
"""

import os

import pytest

from bench.hostile.run import HERE, beside

SECONDS = float(os.environ.get("ITAN_TEST_LOAD_SECONDS", "1.5"))
# tens of seconds each without the bounds; a busy machine is slow, but slow before the load too
SLACK_SECONDS = 0.3
TIMES_AS_LONG = 30


@pytest.mark.parametrize("load", ["heads", "half-open", "slow-bodies"])
def test_nobody_waits_for_connections_that_come_to_nothing(load):
    found = beside(load, HERE, SECONDS, quiet_seconds=1.0)
    for probed, waits in found.loaded.items():
        before, meanwhile = found.quiet[probed].quantile_ms(0.9), waits.quantile_ms(0.9)
        print(f"{load}, {probed}: p90 {before:.1f} ms before, {meanwhile:.1f} ms beside")
        assert waits.failed == 0
        assert meanwhile < 1e3 * SLACK_SECONDS + TIMES_AS_LONG * before
