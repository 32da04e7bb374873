"""Every Prometheus metric of the service; all label values are known beforehand and exist at 0 from the start."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

OTHER = "other"
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
SAMPLE_OUTCOMES = ("learned", "repeated", "scored")
LABEL_OUTCOMES = ("applied", "duplicate", "revised", "withdrawn", "unknown", "expired", "conflict")
MISMATCHES = ("version", "other")
STORE_ERRORS = ("unavailable", "stale", "missing", "corrupt", "elsewhere")
LATENCY_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The metrics of one app, in a registry of their own."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "requests answered", "route", "method", "status_class")
        self.latency = Histogram(
            "itan_request_seconds",
            "time to answer, by route",
            ["route"],
            buckets=LATENCY_SECONDS,
            registry=self.registry,
        )
        self.samples = self._counter("samples", "samples of accepted requests, by what was done with them", "outcome")
        self.flags = self._counter("flags", "samples found anomalous when they were observed")
        self.labels = self._counter("labels", "labels by what became of them, each sample once a request", "outcome")
        self.snapshots = self._counter("snapshots", "snapshots stored")
        self.snapshot_failures = self._counter("snapshot_failures", "snapshots that could not be stored")
        self.replay_mismatches = self._counter(
            "replay_mismatches",
            "replayed samples that differ from the log in score or threshold, by whether another version logged them",
            "reason",
        )
        self.setbacks = self._counter(
            "store_setbacks", "streams that the store gave back older than it had acknowledged"
        )
        self.store_errors = self._counter("store_errors", "requests that failed on the store, by reason", "reason")
        self.streams_opened = self._counter("streams_opened", "streams brought into memory")
        self.streams_closed = self._counter(
            "streams_closed", "streams closed to make room, or because nobody asked for them"
        )
        self.open_streams = self._gauge("open_streams", "streams in memory")
        self.open_stream_bytes = self._gauge("open_stream_bytes", "memory that the open streams take")
        self.watchers = self._gauge("watchers", "event streams that are being sent")
        self.snapshot_age = self._gauge(
            "snapshot_age_seconds", "age of the oldest change that no snapshot holds; 0 if none"
        )
        self._gauge("build_info", "1, labelled by version", "version").labels(version).set(1)
        self._fill(self.samples, SAMPLE_OUTCOMES)
        self._fill(self.labels, LABEL_OUTCOMES)
        self._fill(self.store_errors, STORE_ERRORS)
        self._fill(self.replay_mismatches, MISMATCHES)
        self._routes: dict[tuple[str, str], dict[str, Counter]] = {}
        self._latencies: dict[str, Histogram] = {}
        self.know_routes([(OTHER, OTHER)])

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"itan_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"itan_{name}", text, labels, registry=self.registry)

    def _fill(self, counter: Counter, values: Iterable[str]) -> None:
        for value in values:
            counter.labels(value)

    def know_routes(self, routes: Iterable[tuple[str, str]]) -> None:
        """Create the series of (route, method) pairs; all other requests are counted as one."""
        for route, method in routes:
            self._routes[route, method] = {c: self.requests.labels(route, method, c) for c in STATUS_CLASSES}
            self._latencies[route] = self.latency.labels(route)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, method) if (route, method) in self._routes else (OTHER, OTHER)
        self._routes[key][f"{status // 100}xx"].inc()
        self._latencies[key[0]].observe(seconds)

    def watch(
        self, open_streams: Callable[[], float], stream_bytes: Callable[[], float], snapshot_age: Callable[[], float]
    ) -> None:
        """Read these at each scrape."""
        self.open_streams.set_function(open_streams)
        self.open_stream_bytes.set_function(stream_bytes)
        self.snapshot_age.set_function(snapshot_age)

    def text(self) -> bytes:
        """Give all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
