"""Rows of the service's dashboard: Redis, by redis_exporter."""

from grafana_foundation_sdk.builders.dashboard import Dashboard
from panels import add, chart


def rate(metric: str) -> str:
    """Give the increase of a counter of each Redis in a second."""
    return f"rate(redis_{metric}[$__rate_interval])"


def add_redis(dashboard: Dashboard) -> None:
    """Add whether Redis has room and time, and keeps what it is given."""
    cpu = f"{rate('cpu_user_main_thread_seconds_total')} + {rate('cpu_sys_main_thread_seconds_total')}"
    add(
        dashboard,
        "Redis",
        chart(
            "Memory of Redis",
            "used counts against maxmemory; at the limit Redis refuses writes. process is what the machine sees.",
            "bytes",
            ("redis_memory_used_bytes", "used {{instance}}"),
            ("redis_memory_used_rss_bytes", "process {{instance}}"),
            ("redis_memory_max_bytes", "maxmemory {{instance}}"),
        ),
        chart(
            "CPU of Redis",
            "Cores in use by its main thread, which can use one.",
            "short",
            (cpu, "{{instance}}"),
        ),
        chart("Commands", "A second.", "ops", (rate("commands_processed_total"), "{{instance}}")),
        chart(
            "Network of Redis",
            "Bytes a second.",
            "Bps",
            (rate("net_input_bytes_total"), "in {{instance}}"),
            (rate("net_output_bytes_total"), "out {{instance}}"),
        ),
        chart(
            "Persistence",
            "1: the last write, rewrite or dump went well. 0: it failed.",
            "short",
            ("redis_aof_last_write_status", "append-only file, write {{instance}}"),
            ("redis_aof_last_bgrewrite_status", "append-only file, rewrite {{instance}}"),
            ("redis_rdb_last_bgsave_status", "dump {{instance}}"),
        ),
        chart(
            "Last dump",
            "Time since the last dump. With an append-only file it only matters for backups of the dump.",
            "s",
            ("time() - redis_rdb_last_save_timestamp_seconds", "{{instance}}"),
        ),
        chart(
            "Size of the append-only file",
            "It grows with each write until Redis rewrites it.",
            "bytes",
            ("redis_aof_current_size_bytes", "{{instance}}"),
        ),
        chart(
            "Replicas",
            "How many are connected, and how far each is behind, in seconds.",
            "short",
            ("redis_connected_slaves", "connected to {{instance}}"),
            ("redis_connected_slave_lag_seconds", "behind, {{slave_ip}}:{{slave_port}}"),
        ),
        chart(
            "Evicted and rejected",
            "A second. evicted: keys thrown away, so state is lost. rejected: connections beyond maxclients.",
            "ops",
            (rate("evicted_keys_total"), "evicted {{instance}}"),
            (rate("rejected_connections_total"), "rejected {{instance}}"),
        ),
    )
