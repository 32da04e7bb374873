"""The dashboard of the service: is it up, does it fail, is it slow, and where."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, QueryVariable
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort
from panels import SOURCE, add, board, chart, number

HERE = 'instance=~"$instance"'
OBSERVE = f'itan_request_seconds_bucket{{{HERE}, route="/observe"}}[$__rate_interval]'
STEPS = f"itan_observe_step_seconds_bucket{{{HERE}}}[$__rate_interval]"


def rate(metric: str, by: str, more: str = "") -> str:
    """Sum what a counter rises by in a second."""
    return f"sum by ({by}) (rate({metric}{{{HERE}{more}}}[$__rate_interval]))"


def build() -> Dashboard:
    """Put the dashboard together."""
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
    add_requests(dashboard)
    add_connections(dashboard)
    add_store(dashboard)
    add_streams(dashboard)
    add_process(dashboard)
    return dashboard


def add_overview(dashboard: Dashboard) -> None:
    """What to see first."""
    failing = f'sum(rate(itan_requests_total{{{HERE}, status_class="5xx"}}[$__rate_interval]))'
    answered = f"sum(rate(itan_requests_total{{{HERE}}}[$__rate_interval]))"
    firing = 'count(ALERTS{alertstate="firing", alertname=~"Itan.*"}) or vector(0)'
    kept_from = f'sum(rate(itan_store_errors_total{{{HERE}, reason=~"unavailable|corrupt"}}[$__rate_interval]))'
    filled = f"max(itan_open_stream_bytes{{{HERE}}} / itan_memory_budget_bytes)"
    add(
        dashboard,
        "At a glance",
        number(
            "Workers up", "Workers that answer /metrics.", "short", 'sum(up{job="itan"})', [(1, "green")], low="red"
        ),
        number("Alerts", "Alerts of itan that fire now; Prometheus lists them.", "short", firing, [(1, "red")]),
        number("Requests", "Answered a second, whatever the status.", "reqps", answered, []),
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
            "Requests a second that failed since the store was away, or what it holds is damaged.",
            "reqps",
            kept_from,
            [(0.001, "red")],
        ),
        number(
            "Oldest unsaved change",
            "Age of the oldest change that no snapshot holds. Nothing is lost, but a restart has to replay it.",
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
    """How many, how they end, how long they take."""
    quantiles = [(f"histogram_quantile({q}, sum by (le) (rate({OBSERVE})))", f"p{q * 100:g}") for q in (0.5, 0.9, 0.99)]
    all_routes = f"itan_request_seconds_bucket{{{HERE}}}[$__rate_interval]"
    steps = f"{rate('itan_observe_step_seconds_sum', 'step')} / {rate('itan_observe_step_seconds_count', 'step')}"
    add(
        dashboard,
        "Requests",
        chart("By route", "Requests a second.", "reqps", (rate("itan_requests_total", "route"), "{{route}}")),
        chart(
            "By status",
            "Requests a second. 4xx is what clients did wrong; 5xx is ours, or the store's.",
            "reqps",
            (rate("itan_requests_total", "status_class"), "{{status_class}}"),
            stacked=True,
        ),
        chart(
            "Refused by limits",
            "Requests a second that a limit of the service or of their key refused. max_streams: nobody can create a "
            "stream any more.",
            "reqps",
            (rate("itan_limit_refusals_total", "limit"), "{{limit}}"),
            stacked=True,
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
            "Where the time of a request goes: decode the body, engine scores and learns, append to the store's log, "
            "encode the answer.",
            "s",
            (steps, "{{step}}"),
            stacked=True,
        ),
        chart(
            "Steps of /observe, p99",
            "The slow ones: append is the store, engine grows with features, nodes and batches.",
            "s",
            (f"histogram_quantile(0.99, sum by (le, step) (rate({STEPS})))", "{{step}}"),
        ),
    )


def add_connections(dashboard: Dashboard) -> None:
    """Who is connected, and who had to go."""
    add(
        dashboard,
        "Connections",
        chart(
            "Connections",
            "Open ones of each worker, and how many there may be.",
            "short",
            (f"itan_connections{{{HERE}}}", "{{instance}}"),
            (f"min(itan_max_connections{{{HERE}}})", "limit"),
        ),
        chart(
            "Connections closed",
            "By the service, a second. room, full, bodies, files: there were too many. slow_head, slow_body, unread: "
            "their clients were too slow. invalid and head: what came was not to be read. idle is as it should be.",
            "ops",
            (rate("itan_connections_closed_total", "reason"), "{{reason}}"),
            stacked=True,
        ),
        chart(
            "Bodies of requests",
            "Memory of those that are coming or being worked on, and what they may take.",
            "bytes",
            (f"itan_body_bytes{{{HERE}}}", "{{instance}}"),
            (f"max(itan_body_budget_bytes{{{HERE}}})", "budget"),
        ),
    )


def add_store(dashboard: Dashboard) -> None:
    """Whether what is acknowledged is kept, and how much that is."""
    add(
        dashboard,
        "Store",
        chart(
            "Failed requests, by reason",
            "unavailable: the store does not answer. corrupt: damaged or foreign data. elsewhere: another worker has "
            "the stream, which is routing. stale: another writer was faster. missing: no such stream.",
            "reqps",
            (rate("itan_store_errors_total", "reason"), "{{reason}}"),
        ),
        chart(
            "How full the store is",
            "What is used of the SQLite file's disk, or of the fullest Redis' maxmemory. Above 85 % it is time to act.",
            "percentunit",
            (f"itan_store_used_bytes{{{HERE}}} / (itan_store_limit_bytes{{{HERE}}} > 0)", "{{instance}}"),
        ),
        chart(
            "Refused writes, by cause",
            "Writes a second that the store refused. full: a disk or Redis' memory. failed: the disk. replaced: the "
            "SQLite file was changed beneath the service.",
            "ops",
            (rate("itan_store_refused_writes_total", "cause"), "{{cause}}"),
        ),
        chart(
            "SQLite files",
            "The write-ahead file is copied into the database every 4 MB, unless somebody reads for long.",
            "bytes",
            (f"itan_store_database_bytes{{{HERE}}}", "database {{instance}}"),
            (f"itan_store_wal_bytes{{{HERE}}}", "write-ahead file {{instance}}"),
        ),
        chart(
            "Retries and setbacks",
            "Retries are commands sent once more. A setback is a stream that the store gave back older than it had "
            "acknowledged: writes are lost.",
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
            "damaged: they cannot be opened without loss. mismatched: replayed otherwise than logged, and nobody "
            "has accepted it. rebuilt: a snapshot was lost, and nothing else.",
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
            "Oldest unsaved change",
            "Its age on each worker, and the age at which a snapshot is due.",
            "s",
            (f"itan_snapshot_age_seconds{{{HERE}}}", "{{instance}}"),
            (f"max(itan_snapshot_due_seconds{{{HERE}}})", "due"),
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
    """Which worker has how many streams, and how they come and go."""
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
            "Streams that each worker alone may write, and changes of that. lost: a worker did not renew in time. "
            "refused: a request came to a worker that has not got the stream.",
            "short",
            (f"itan_leases_held{{{HERE}}}", "held by {{instance}}"),
            (f"sum by (change) (increase(itan_lease_changes_total{{{HERE}}}[$__rate_interval]))", "{{change}}"),
        ),
    )


def add_process(dashboard: Dashboard) -> None:
    """What the machine has to give."""
    add(
        dashboard,
        "Process",
        chart(
            "Memory",
            "Of the process, of its open streams, and what these may take.",
            "bytes",
            (f'process_resident_memory_bytes{{job="itan", {HERE}}}', "process {{instance}}"),
            (f"itan_open_stream_bytes{{{HERE}}}", "streams {{instance}}"),
            (f"max(itan_memory_budget_bytes{{{HERE}}})", "budget"),
        ),
        chart(
            "CPU",
            "Cores in use; a worker uses one at most, and a little for the store.",
            "short",
            (f'rate(process_cpu_seconds_total{{job="itan", {HERE}}}[$__rate_interval])', "{{instance}}"),
            width=6,
        ),
        chart(
            "Open files",
            "Connections and files of the process, and how many it may have.",
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
