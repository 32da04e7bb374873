"""The metrics of one app: what it counts, what it measures, and what each scrape reads of its streams."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import sub
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from app.metrics.distribution import Distribution
from app.metrics.known import (
    ARCHIVE_READS,
    CELLS,
    CLOSINGS,
    CONNECTION_CLOSINGS,
    DELETIONS,
    FORWARDED,
    INCIDENT_EVENTS,
    LABEL_OUTCOMES,
    LEASE_CHANGES,
    MISMATCHES,
    NOTICE_OUTCOMES,
    OBSERVE_STEPS,
    OTHER,
    SAMPLE_OUTCOMES,
    STATUS_CLASSES,
    STORE_ERRORS,
    TRUTHS,
    WRITE_REFUSALS,
)
from app.metrics.refusals import RefusalsCollector
from app.metrics.source import Connected, Source, Usage
from app.metrics.streams import StreamsCollector
from app.metrics.view import EVERYTHING, View

LATENCY_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STEP_SECONDS: Final = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
SCORE_NATS: Final = (-100, -50, -20, -10, -5, -2, 0, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SURPRISE_NATS: Final = (-100, -50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50, 100, 1000)


class Metrics:
    """The metrics of one app, in a registry of their own; counters count what this process did, gauges say what is."""

    def __init__(self, version: str, *, watched: Iterable[str] = (), top: int = 20) -> None:
        self.registry = CollectorRegistry()
        self._count_requests()
        self._watch_connections()
        self._count_samples()
        self._count_labels()
        self._watch_store()
        self._watch_streams()
        self._watch_keys()
        self._count_notices()
        self._gauge("build_info", "1, labelled by version", "version").labels(version).set(1)
        self._streams = StreamsCollector(watched, top)
        self.learned_at: dict[str, float] = {}
        self.registry.register(self._streams)
        ProcessCollector(registry=self.registry)

    def _count_requests(self) -> None:
        self.requests = self._counter("requests", "requests answered", "route", "method", "status_class")
        self.latency = self._times("request_seconds", "time to answer, by route", "route", LATENCY_SECONDS)
        steps = self._times(
            "observe_step_seconds", "time of each step of learning a batch, by step", "step", STEP_SECONDS
        )
        self.observe_steps = {step: steps.labels(step) for step in OBSERVE_STEPS}
        self._routes: dict[tuple[str, str], dict[str, Counter]] = {}
        self._latencies: dict[str, Histogram] = {}
        self.know_routes([(OTHER, OTHER)])

    def _watch_connections(self) -> None:
        self._connections = self._gauge("connections", "open connections")
        self._max_connections = self._gauge("max_connections", "how many connections there may be")
        self._body_bytes = self._gauge("body_bytes", "memory that bodies of requests take")
        self._body_budget = self._gauge("body_budget_bytes", "memory that bodies of requests may take")
        text = "connections that the service closed, by reason"
        self.connections_closed = self._by("connections_closed", text, "reason", CONNECTION_CLOSINGS)

    def _count_samples(self) -> None:
        text = "samples in accepted requests, by what was done with them"
        self.samples = self._by("samples", text, "outcome", SAMPLE_OUTCOMES)
        text = "records of POST /ingest that were refused, by the code of their problem"
        self._refused_records = self._counter("refused_records", text, "code")
        self.refused_records: dict[str, Counter] = {}
        text = "values left out because their streams have no such feature, and records with nothing to join"
        self.ignored_values = self._counter("ignored_values", text)
        text = "records of POST /ingest sent to the workers that hold their streams: answered, or failed"
        self.forwarded_records = self._by("forwarded_records", text, "outcome", FORWARDED)
        self.flags = self._counter("flags", "samples found anomalous when they were observed")
        text = "flags to expect by the configs of the streams: of normal samples, and of anomalies if all are found"
        self.expected_flags = self._by("expected_flags", text, "truth", TRUTHS)
        text = "incidents that were opened, closed, or accepted as the new normal"
        self.incidents = self._by("incidents", text, "event", INCIDENT_EVENTS)
        text = "scores of observed samples, in nats, in the units of each stream"
        self.scores = Distribution("itan_score_nats", text, SCORE_NATS, self.registry)
        text = "score minus threshold of observed samples: a sample above 0 is flagged, the higher the surer"
        self.surprises = Distribution("itan_surprise_nats", text, SURPRISE_NATS, self.registry)
        self.splits = self._counter("splits", "nodes that were split")

    def _count_labels(self) -> None:
        self.labels = self._by(
            "labels", "labels by outcome; a request counts each sample once", "outcome", LABEL_OUTCOMES
        )
        self.confusion = self._by(
            "confusion",
            "labels applied or revised, by decision and truth: tp were flagged and are anomalous, fp are false alarms, "
            "fn are misses",
            "cell",
            CELLS,
        )
        self.retractions = self._counter("retractions", "samples removed from a model because of their labels")

    def _watch_store(self) -> None:
        self.snapshots = self._counter("snapshots", "snapshots stored")
        self.snapshot_failures = self._counter("snapshot_failures", "snapshots that could not be stored")
        self.snapshot_age = self._gauge(
            "snapshot_age_seconds", "age of the oldest change that is in no snapshot; 0 if there is none"
        )
        self.snapshot_overdue = self._gauge(
            "snapshot_overdue_seconds", "how long the snapshot that has been due longest has been waiting; 0 if none is"
        )
        self.replay_mismatches = self._by(
            "replay_mismatches",
            "replayed samples that differ from the log in score, threshold, severity or incident, by whether another "
            "version logged them",
            "reason",
            MISMATCHES,
        )
        self.streams_rebuilt = self._counter(
            "streams_rebuilt", "streams rebuilt from their logs because their snapshot could not be read"
        )
        self.cold_starts = self._counter(
            "cold_starts", "new streams that could not begin with the model that their template names"
        )
        self.damaged_streams = self._gauge(
            "damaged_streams", "streams that this worker found damaged and that nobody has repaired or deleted yet"
        )
        self.mismatched_streams = self._gauge(
            "mismatched_streams", "streams whose replay differed from the log and that nobody has accepted yet"
        )
        self.setbacks = self._counter(
            "store_setbacks", "streams that came back from the store older than the store had acknowledged"
        )
        self.store_errors = self._by(
            "store_errors", "requests that failed because of the store, by reason", "reason", STORE_ERRORS
        )

        self.compacted_samples = self._counter("compacted_samples", "samples moved into blocks of their logs")
        self.compaction_failures = self._counter(
            "compaction_failures", "attempts to move a log into blocks that failed"
        )
        self.archived_samples = self._counter("archived_samples", "samples moved from the store to the archive")
        self._archived_bytes = self._counter("archived_bytes", "bytes of the files written to the archive")
        self.archive_failures = self._counter("archive_failures", "rounds of moves that failed because of the archive")
        text = "parts of logs read back from the archive, or from the memory for them; missing or failed"
        self._archive_reads = self._by("archive_reads", text, "outcome", ARCHIVE_READS)
        text = "how long moves to the archive have been failing; 0 if they succeed, or without an archive"
        self._archive_failing = self._gauge("archive_failing_seconds", text)

        text = "writes of streams that the store refused, by requests and by the service itself, by cause"
        self.refused_writes = self._by("store_refused_writes", text, "cause", WRITE_REFUSALS)
        self._store_used = self._gauge(
            "store_used_bytes", "used bytes of the disk of the SQLite file, or of the memory of Redis"
        )
        self._store_limit = self._gauge("store_limit_bytes", "size of that disk or memory; 0 if no limit is known")
        self._store_database = self._gauge("store_database_bytes", "size of the SQLite database")
        self._store_wal = self._gauge("store_wal_bytes", "size of SQLite's write-ahead file")

    def _watch_streams(self) -> None:
        self.streams_opened = self._counter("streams_opened", "streams loaded into memory")
        self.streams_closed = self._by(
            "streams_closed", "streams closed to make room, or because nobody used them", "reason", CLOSINGS
        )
        self.streams_deleted = self._by(
            "streams_deleted",
            "streams deleted on request, or because they were silent for too long",
            "reason",
            DELETIONS,
        )
        self.silent_trims = self._counter(
            "silent_trims", "logs of silent streams that were trimmed because of their age"
        )
        self.open_streams = self._gauge("open_streams", "streams in memory")
        self.open_stream_bytes = self._gauge("open_stream_bytes", "memory that the open streams take")
        self.memory_budget = self._gauge("memory_budget_bytes", "memory that the open streams may take")
        self.watchers = self._gauge("watchers", "event streams that this worker is sending")
        self.leases_held = self._gauge(
            "leases_held", "streams that this worker holds a lease of; 0 if the store serves only one process"
        )
        text = "leases acquired, released, lost to another worker, refused because another holds them, or handed over"
        self.lease_changes = self._by("lease_changes", text, "change", LEASE_CHANGES)

    def _watch_keys(self) -> None:
        self.keys = self._gauge("api_keys", "valid API keys in ITAN_API_KEYS and in the file of ITAN_API_KEYS_FILE")
        text = "1 while the file of ITAN_API_KEYS_FILE cannot be read; the earlier keys stay valid"
        self.keys_file_broken = self._gauge("api_keys_file_broken", text)
        self.refusals = RefusalsCollector()
        self.registry.register(self.refusals)

    def _count_notices(self) -> None:
        text = (
            "notices of incidents that were sent, or dropped because the receiver rejects them, or is down for too long"
        )
        self.notices = self._by("notices", text, "outcome", NOTICE_OUTCOMES)
        self.notice_failures = self._counter("notice_failures", "tries to send a notice that failed and are repeated")
        self.notices_waiting = self._gauge("notices_waiting", "changes of incidents that wait to be told")
        text = "how long the oldest of them has been waiting"
        self.notices_oldest = self._gauge("notices_oldest_seconds", text)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"itan_{name}", text, labels, registry=self.registry)

    def _by(self, name: str, text: str, label: str, values: Iterable[str]) -> dict[str, Counter]:
        """Make a counter for each value of a label."""
        counter = self._counter(name, text, label)
        return {value: counter.labels(value) for value in values}

    def _times(self, name: str, text: str, label: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"itan_{name}", text, [label], buckets=buckets, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"itan_{name}", text, labels, registry=self.registry)

    def know_routes(self, routes: Iterable[tuple[str, str]]) -> None:
        """Create the series of (route, method) pairs; all other requests are counted as one."""
        for route, method in routes:
            self._routes[route, method] = {c: self.requests.labels(route, method, c) for c in STATUS_CLASSES}
            self._latencies[route] = self.latency.labels(route)

    def count_refused_record(self, code: str) -> None:
        """Count a record with a problem; another worker, of a newer version, may tell of one that is not known."""
        known = self.refused_records.get(code)
        (self._refused_records.labels(code) if known is None else known).inc()

    def know_problems(self, codes: Iterable[str]) -> None:
        """Create the series of the problems that a record may have."""
        self.refused_records = {code: self._refused_records.labels(code) for code in codes}

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, method) if (route, method) in self._routes else (OTHER, OTHER)
        self._routes[key][f"{status // 100}xx"].inc()
        self._latencies[key[0]].observe(seconds)

    def note_scores(
        self, scores: Sequence[float], thresholds: Sequence[float], flags: int, expected: Mapping[str, float]
    ) -> None:
        """Count samples that got a score and met a threshold; expected are flags to expect of them by truth."""
        self.scores.add(scores)
        self.surprises.add(map(sub, scores, thresholds))
        for truth, flags_to_expect in expected.items():
            self.expected_flags[truth].inc(flags_to_expect)
        if flags:
            self.flags.inc(flags)

    def note_learned(self, stream: str, now: float) -> None:
        """Note when a stream of ITAN_METRICS_STREAMS got a sample."""
        if stream in self._streams.watched:
            self.learned_at[stream] = now

    def watch(self, source: Source, *, memory_budget_bytes: float) -> None:
        """Read this at each scrape."""
        self.open_streams.set_function(source.count)
        self.open_stream_bytes.set_function(source.held_bytes)
        self.snapshot_age.set_function(source.oldest_unsaved_seconds)
        self.snapshot_overdue.set_function(source.overdue_seconds)
        self.watchers.set_function(source.watchers)
        self.damaged_streams.set_function(source.damaged_streams)
        self.mismatched_streams.set_function(source.mismatched_streams)
        self.leases_held.set_function(source.leases_held)
        self.memory_budget.set(memory_budget_bytes)
        self._streams.source = source

    def note_archived_bytes(self, size_bytes: int) -> None:
        """Count bytes written to the archive."""
        self._archived_bytes.inc(size_bytes)

    def note_archive_read(self, outcome: str) -> None:
        """Count a part of a log that was to be read back."""
        self._archive_reads[outcome].inc()

    def watch_archive(self, failing_seconds: Callable[[], float]) -> None:
        """Read this at each scrape."""
        self._archive_failing.set_function(failing_seconds)

    def note_usage(self, usage: Usage) -> None:
        """Note how full the store is."""
        self._store_used.set(usage.used_bytes)
        self._store_limit.set(usage.limit_bytes)
        self._store_database.set(usage.database_bytes)
        self._store_wal.set(usage.wal_bytes)

    def watch_connections(self, connections: Connected, most: int, body_budget_bytes: float) -> None:
        """Read this at each scrape."""
        self._connections.set_function(connections.__len__)
        self._body_bytes.set_function(lambda: connections.held_bytes)
        self._max_connections.set(most)
        self._body_budget.set(body_budget_bytes)

    def text(self, view: View = EVERYTHING) -> bytes:
        """Give all metrics in Prometheus' text format, with the names that the reader may know."""
        self._streams.view = self.refusals.view = view
        return generate_latest(self.registry)
