"""The dashboard of the service: is it up, does it fail, is it slow, and where."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, QueryVariable
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort
from objectives import add_objectives
from panels import SOURCE, add, board, chart, number
from proxy import add_proxy
from redis_server import add_redis

HERE = 'instance=~"$instance"'
ASKED = 'route!~"/livez|/readyz|/metrics"'
"""Requests of clients, not of those who look whether the service is well."""
OBSERVE = f'itan_request_seconds_bucket{{{HERE}, route="/observe"}}[$__rate_interval]'
STEPS = f"itan_observe_step_seconds_bucket{{{HERE}}}[$__rate_interval]"


def rate(metric: str, by: str, more: str = "") -> str:
    """Sum the increase of a counter in a second."""
    return f"sum by ({by}) (rate({metric}{{{HERE}{more}}}[$__rate_interval]))"


def build() -> Dashboard:
    """Make the dashboard."""
    dashboard = board(
        "itan-service",
        "itan: service",
        "Requests, store, leases, memory. The alerts' runbook is docs/runbook.md.",
        other=("itan-detector", "Detector"),
    ).with_variable(
        QueryVariable("instance")
        .label("Worker")
        .datasource(SOURCE)
        .query('label_values(up{job="itan"}, instance)')
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(True, "All", "$__all"))
    )
    add_overview(dashboard)
    add_objectives(dashboard)
    add_requests(dashboard)
    add_connections(dashboard)
    add_store(dashboard)
    add_streams(dashboard)
    add_notices(dashboard)
    add_process(dashboard)
    add_proxy(dashboard)
    add_redis(dashboard)
    return dashboard


def add_overview(dashboard: Dashboard) -> None:
    """Add what to look at first."""
    failing = f'sum(rate(itan_requests_total{{{HERE}, {ASKED}, status_class="5xx"}}[$__rate_interval]))'
    answered = f"sum(rate(itan_requests_total{{{HERE}, {ASKED}}}[$__rate_interval]))"
    firing = 'count(ALERTS{alertstate="firing", alertname=~"Itan.*", severity!="none"}) or vector(0)'
    kept_from = f'sum(rate(itan_store_errors_total{{{HERE}, reason=~"unavailable|corrupt"}}[$__rate_interval]))'
    filled = f"max(itan_open_stream_bytes{{{HERE}}} / itan_memory_budget_bytes)"
    add(
        dashboard,
        "At a glance",
        number(
            "Workers up", "Workers that answer /metrics.", "short", 'sum(up{job="itan"})', [(1, "green")], low="red"
        ),
        number("Alerts", "Alerts of itan that fire now; Prometheus lists them.", "short", firing, [(1, "red")]),
        number("Requests", "Answered a second, whatever the status, without probes.", "reqps", answered, []),
        number(
            "Failing",
            "Share of requests answered with 5xx. 503 is also what clients get while the store is down.",
            "percentunit",
            f"{failing} / {answered}",
            [(0.001, "orange"), (0.05, "red")],
        ),
        number(
            "p99 of /observe",
            "One in a hundred requests for /observe takes longer.",
            "s",
            f"histogram_quantile(0.99, sum by (le) (rate({OBSERVE})))",
            [(0.25, "orange"), (1, "red")],
        ),
        number(
            "Store errors",
            "Requests a second that failed because the store was down, or its data damaged.",
            "reqps",
            kept_from,
            [(0.001, "red")],
        ),
        number(
            "Oldest unsaved change",
            "Age of the oldest change that is in no snapshot. Nothing is lost, but a restart must replay it.",
            "s",
            f"max(itan_snapshot_age_seconds{{{HERE}}})",
            [(120, "orange"), (300, "red")],
        ),
        number(
            "Memory budget used",
            "Memory of the open streams, as a share of ITAN_MEMORY_BUDGET_MB, on the fullest worker.",
            "percentunit",
            filled,
            [(0.9, "orange")],
        ),
    )


def add_requests(dashboard: Dashboard) -> None:
    """Add how many requests come, how they end, and how long they take."""
    quantiles = [(f"histogram_quantile({q}, sum by (le) (rate({OBSERVE})))", f"p{q * 100:g}") for q in (0.5, 0.9, 0.99)]
    all_routes = f"itan_request_seconds_bucket{{{HERE}}}[$__rate_interval]"
    steps = f"{rate('itan_observe_step_seconds_sum', 'step')} / {rate('itan_observe_step_seconds_count', 'step')}"
    add(
        dashboard,
        "Requests",
        chart("By route", "Requests a second.", "reqps", (rate("itan_requests_total", "route"), "{{route}}")),
        chart(
            "By status",
            "Requests a second. 4xx: the client was wrong. 5xx: the service or the store failed.",
            "reqps",
            (rate("itan_requests_total", "status_class"), "{{status_class}}"),
            stacked=True,
        ),
        chart(
            "Refused by limits",
            "Requests a second that a limit of the service or of their key refused. max_streams: nobody can create "
            "streams any more.",
            "reqps",
            (rate("itan_limit_refusals_total", "limit"), "{{limit}}"),
            stacked=True,
        ),
        chart(
            "Refused records of /ingest",
            "Records a second, by the code of their problem. Agents read only the status, so nobody else may notice: "
            "look for them in the answers, or send one by hand.",
            "cps",
            (rate("itan_refused_records_total", "code"), "{{code}}"),
            stacked=True,
        ),
        chart(
            "Records sent to other workers",
            "Records a second of /ingest whose streams other workers hold. failed: such a worker does not answer, and "
            "its log or its network says why.",
            "cps",
            (rate("itan_forwarded_records_total", "outcome"), "{{outcome}}"),
            stacked=True,
        ),
        chart(
            "Values left out of /ingest",
            "Values a second of records whose streams have no such feature: an agent sends more than it did.",
            "cps",
            ("sum(rate(itan_ignored_values_total{" + HERE + "}[$__rate_interval]))", "values"),
        ),
        chart("Latency of /observe", "Time to answer, by quantile.", "s", *quantiles),
        chart(
            "p99 by route",
            "One in a hundred requests takes longer.",
            "s",
            (f"histogram_quantile(0.99, sum by (le, route) (rate({all_routes})))", "{{route}}"),
        ),
        chart(
            "Steps of /observe, mean",
            "Where the time of a request goes. decode: the body; engine: scores and learns; append: writes to the "
            "store's log; encode: the answer.",
            "s",
            (steps, "{{step}}"),
            stacked=True,
        ),
        chart(
            "Steps of /observe, p99",
            "The slowest steps. append depends on the store, engine on features, nodes and batches.",
            "s",
            (f"histogram_quantile(0.99, sum by (le, step) (rate({STEPS})))", "{{step}}"),
        ),
    )


def add_connections(dashboard: Dashboard) -> None:
    """Add open and closed connections."""
    add(
        dashboard,
        "Connections",
        chart(
            "Connections",
            "Open connections of each worker, and how many there may be.",
            "short",
            (f"itan_connections{{{HERE}}}", "{{instance}}"),
            (f"min(itan_max_connections{{{HERE}}})", "limit"),
            width=6,
        ),
        chart(
            "Connections closed",
            "Closed by the service, a second. room, full, bodies, files: there were too many. slow_head, slow_body, "
            "unread: the client was too slow. invalid, head: the input could not be read. idle is normal.",
            "ops",
            (rate("itan_connections_closed_total", "reason"), "{{reason}}"),
            stacked=True,
            width=6,
        ),
        chart(
            "Bodies of requests",
            "Memory of bodies that are arriving or being handled, and how much they may take.",
            "bytes",
            (f"itan_body_bytes{{{HERE}}}", "{{instance}}"),
            (f"max(itan_body_budget_bytes{{{HERE}}})", "budget"),
            width=6,
        ),
        chart(
            "Event streams",
            "Event streams that each worker sends, to open pages for example. It refuses more than ITAN_MAX_WATCHERS.",
            "short",
            (f"itan_watchers{{{HERE}}}", "{{instance}}"),
            width=6,
        ),
    )


def add_store(dashboard: Dashboard) -> None:
    """Add whether the store keeps what is acknowledged, and how full it is."""
    add(
        dashboard,
        "Store",
        chart(
            "Failed requests, by reason",
            "unavailable: the store does not answer. corrupt: damaged or foreign data. elsewhere: another worker has "
            "the stream (routing). stale: another writer was faster. missing: there is no such stream.",
            "reqps",
            (rate("itan_store_errors_total", "reason"), "{{reason}}"),
        ),
        chart(
            "How full the store is",
            "Used share of the SQLite file's disk, or of maxmemory in the fullest Redis. Above 85 % it is time to act.",
            "percentunit",
            (f"itan_store_used_bytes{{{HERE}}} / (itan_store_limit_bytes{{{HERE}}} > 0)", "{{instance}}"),
        ),
        chart(
            "Refused writes, by cause",
            "Writes a second that the store refused. full: a disk, or Redis' memory. failed: the disk. replaced: the "
            "SQLite file was changed while the service used it.",
            "ops",
            (rate("itan_store_refused_writes_total", "cause"), "{{cause}}"),
        ),
        chart(
            "Samples moved into blocks",
            "Samples a second that went into compressed blocks. failures: the log of a stream stays as it is and takes "
            "more room. The service's log says why.",
            "ops",
            (rate("itan_compacted_samples_total", "instance"), "{{instance}}"),
            (rate("itan_compaction_failures_total", "instance"), "failures {{instance}}"),
        ),
        chart(
            "Samples moved to the archive",
            "Samples a second that went from the store to the archive. Without them logs grow in the store.",
            "ops",
            (rate("itan_archived_samples_total", "instance"), "{{instance}}"),
        ),
        chart(
            "Read from the archive",
            "Parts of logs a second. missing: the file is gone, and with it its samples. failed: the archive does not "
            "answer.",
            "ops",
            (rate("itan_archive_reads_total", "outcome"), "{{outcome}}"),
        ),
        chart(
            "SQLite files",
            "SQLite copies the write-ahead file into the database every 4 MB, unless a long read prevents it.",
            "bytes",
            (f"itan_store_database_bytes{{{HERE}}}", "database {{instance}}"),
            (f"itan_store_wal_bytes{{{HERE}}}", "write-ahead file {{instance}}"),
        ),
        chart(
            "Retries and setbacks",
            "Retries: commands that were repeated. Setbacks: streams that came back from the store older than it had "
            "acknowledged, so writes are lost.",
            "short",
            (f"sum(increase(itan_store_retries_total{{{HERE}}}[$__rate_interval]))", "retries"),
            (f"sum(increase(itan_store_setbacks_total{{{HERE}}}[$__rate_interval]))", "setbacks"),
            (
                f"sum by (reason) (increase(itan_replay_mismatches_total{{{HERE}}}[$__rate_interval]))",
                "replay mismatches: {{reason}}",
            ),
        ),
        chart(
            "Streams in trouble",
            "damaged: cannot be opened without loss. mismatched: the replay differed from the log, and nobody has "
            "accepted that. rebuilt: a snapshot was lost, and nothing else.",
            "short",
            (f"sum(itan_damaged_streams{{{HERE}}})", "damaged"),
            (f"sum(itan_mismatched_streams{{{HERE}}})", "mismatched"),
            (f"sum(increase(itan_streams_rebuilt_total{{{HERE}}}[$__rate_interval]))", "rebuilt"),
        ),
        chart(
            "Snapshots",
            "Stored and failed, a second.",
            "ops",
            (f"sum(rate(itan_snapshots_total{{{HERE}}}[$__rate_interval]))", "stored"),
            (f"sum(rate(itan_snapshot_failures_total{{{HERE}}}[$__rate_interval]))", "failed"),
        ),
        chart(
            "Replay",
            "CPU time to replay what is in no snapshot, and how long a snapshot has been due.",
            "s",
            (f"itan_replay_seconds{{{HERE}}}", "{{instance}} replay"),
            (f"itan_snapshot_overdue_seconds{{{HERE}}}", "{{instance}} due since"),
        ),
        chart(
            "Log length",
            "Samples that can still be labelled, and events that a restart would replay.",
            "short",
            (f"sum(itan_log_samples{{{HERE}}})", "samples in the logs"),
            (f"sum(itan_unsaved_events{{{HERE}}})", "events after the snapshots"),
        ),
        chart(
            "Snapshot size",
            "Bytes of the last snapshots of all open streams.",
            "bytes",
            (f"sum by (instance) (itan_snapshot_bytes{{{HERE}}})", "{{instance}}"),
        ),
    )


def add_streams(dashboard: Dashboard) -> None:
    """Add how many streams each worker has, and how they come and go."""
    add(
        dashboard,
        "Streams and leases",
        chart("Open streams", "In memory, by worker.", "short", (f"itan_open_streams{{{HERE}}}", "{{instance}}")),
        chart(
            "Opened and closed",
            "Streams a second. Many closed for room and opened again: the memory budget is too small.",
            "ops",
            (f"sum(rate(itan_streams_opened_total{{{HERE}}}[$__rate_interval]))", "opened"),
            (rate("itan_streams_closed_total", "reason"), "closed: {{reason}}"),
        ),
        chart(
            "Leases",
            "Leases of streams that each worker holds, and their changes. lost: a worker did not renew in time. "
            "refused: a request came to a worker that does not hold the stream.",
            "short",
            (f"itan_leases_held{{{HERE}}}", "held by {{instance}}"),
            (f"sum by (change) (increase(itan_lease_changes_total{{{HERE}}}[$__rate_interval]))", "{{change}}"),
        ),
    )


def add_notices(dashboard: Dashboard) -> None:
    """Add whether people hear of incidents."""
    add(
        dashboard,
        "Notices of incidents",
        chart(
            "Notices, by outcome",
            "Notices a minute. rejected, expired: dropped, because the receiver does not want them, or was down for "
            "three days. failed tries are repeated.",
            "cpm",
            (f"60 * {rate('itan_notices_total', 'outcome')}", "{{outcome}}"),
            (f"60 * sum(rate(itan_notice_failures_total{{{HERE}}}[$__rate_interval]))", "failed tries"),
        ),
        chart(
            "Notices waiting",
            "Changes of incidents that wait to be told. They wait in quiet hours, and while a receiver is down.",
            "short",
            (f"max(itan_notices_waiting{{{HERE}}})", "waiting"),
        ),
        chart(
            "Oldest notice waiting",
            "How long the oldest of them has been waiting. After three days it is dropped.",
            "s",
            (f"max(itan_notices_oldest_seconds{{{HERE}}})", "oldest"),
        ),
    )


def add_process(dashboard: Dashboard) -> None:
    """Add the resources of the process."""
    add(
        dashboard,
        "Process",
        chart(
            "Memory",
            "Memory of the process and of its open streams, and how much these may take.",
            "bytes",
            (f'process_resident_memory_bytes{{job="itan", {HERE}}}', "process {{instance}}"),
            (f"itan_open_stream_bytes{{{HERE}}}", "streams {{instance}}"),
            (f"max(itan_memory_budget_bytes{{{HERE}}})", "budget"),
        ),
        chart(
            "CPU",
            "Cores in use. A worker uses one core at most, and a little more for the store.",
            "short",
            (f'rate(process_cpu_seconds_total{{job="itan", {HERE}}}[$__rate_interval])', "{{instance}}"),
            width=6,
        ),
        chart(
            "Open files",
            "Connections and files of the process, and how many it may open.",
            "short",
            (f'process_open_fds{{job="itan", {HERE}}}', "{{instance}}"),
            (f'min(process_max_fds{{job="itan", {HERE}}})', "limit"),
            width=5,
        ),
        chart(
            "Uptime and version",
            "Time since the start of each worker, by the version that runs.",
            "s",
            (
                f'(time() - process_start_time_seconds{{job="itan", {HERE}}}) '
                "* on (instance) group_left (version) itan_build_info",
                "{{instance}} {{version}}",
            ),
            width=5,
        ),
    )
