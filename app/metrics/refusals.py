"""What was refused because a limit was reached, by limit and by API key."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

from app.metrics.known import LIMITS, OTHER
from app.metrics.view import EVERYTHING

MOST_KEYS: Final = 100


class RefusalsCollector(Collector):
    """Counts refusals; only the first hundred keys by name, because thousands of keys would be as many series."""

    def __init__(self) -> None:
        self.view = EVERYTHING
        self._by_limit = Counter(dict.fromkeys(LIMITS, 0))
        self._by_key: Counter[tuple[str, str]] = Counter()
        self._names: set[str] = set()

    def know(self, key: str, limit: str) -> None:
        """Let the series of a key that has a limit begin at 0."""
        self._by_key[self._name(key), limit] += 0

    def count(self, limit: str, key: str | None = None) -> None:
        """Count a refusal: by a limit of the service, or of a key."""
        self._by_limit[limit] += 1
        if key is not None:
            self._by_key[self._name(key), limit] += 1

    def _name(self, key: str) -> str:
        if len(self._names) < MOST_KEYS:
            self._names.add(key)
        return key if key in self._names else OTHER

    def collect(self) -> Iterable[Metric]:
        text = "requests refused because a limit of the service or of their key was reached"
        together = CounterMetricFamily("itan_limit_refusals", text, labels=["limit"])
        for limit, count in self._by_limit.items():
            together.add_metric([limit], count)
        yield together
        by_key = CounterMetricFamily("itan_key_limit_refusals", f"{text}, by the key's name", labels=["key", "limit"])
        for labels, count in sorted(self._by_key.items()) if self.view.shows_keys else ():
            by_key.add_metric(labels, count)
        yield by_key
