"""Small requests at fixed times. A late one counts from the time when it was due, so no wait is left out."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bench.hostile.loads import SCORED
from bench.hostile.wire import TIMEOUT_SECONDS, Address, ask, connect, head, post, samples

PAUSE_SECONDS: Final = 0.02
LIVEZ: Final = head("GET /livez", "Connection: close")
SCORE: Final = post(f"/observe?stream={SCORED}&learn=false", samples([[0.5, 0.5]]))
LEARN: Final = post("/observe?stream=learned", samples([[0.5, 0.5]]))
PROBES: Final = {"livez": LIVEZ, "score": SCORE, "learn": LEARN}
GOOD: Final = 200


@dataclass(slots=True)
class Waits:
    """Seconds from when requests were due to their answers, and how many failed."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def quantile_ms(self, q: float) -> float:
        """Give a quantile in milliseconds."""
        return 1e3 * float(np.quantile(self.seconds, q))


def probe(address: Address, seconds: float) -> dict[str, Waits]:
    """Send each kind of small request for this long."""
    found = {name: Waits() for name in PROBES}
    start = time.perf_counter()

    def send(name: str) -> None:
        for k in range(int(seconds / PAUSE_SECONDS)):
            due = start + k * PAUSE_SECONDS
            time.sleep(max(0.0, due - time.perf_counter()))
            if not is_answered(address, PROBES[name]):
                found[name].failed += 1
            found[name].seconds.append(time.perf_counter() - due)
            if due + TIMEOUT_SECONDS < time.perf_counter():
                return

    in_threads([lambda name=name: send(name) for name in PROBES])  # type: ignore[misc]
    return found


def is_answered(address: Address, request: bytes) -> bool:
    """Send a request on a connection of its own, as probes do, and tell whether it was accepted."""
    try:
        with connect(address) as connection:
            return ask(connection, request)[0] == GOOD
    except OSError:
        return False


def in_threads(work: list[Callable[[], None]]) -> None:
    """Run all these at the same time."""
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
