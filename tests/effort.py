"""How much the random tests try: all of it with ITAN_TEST_FULL=1, as in CI, a quarter otherwise."""

import os

IS_FULL = os.environ.get("ITAN_TEST_FULL") == "1"
PART = 4


def tries(full: int) -> int:
    """Give how many examples or seeds to try, of so many in a full run."""
    return full if IS_FULL else -(-full // PART)
