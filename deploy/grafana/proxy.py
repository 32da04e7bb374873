"""Rows of the service's dashboard: HAProxy, by its own endpoint."""

from grafana_foundation_sdk.builders.dashboard import Dashboard
from panels import add, chart

FRONTEND = 'proxy="itan"'
BACKEND = 'proxy="workers"'


def rate(metric: str, by: str = "") -> str:
    """Sum the increase of a counter of all proxies in a second."""
    return f"sum{by} (rate(haproxy_{metric}[$__rate_interval]))"


def add_proxy(dashboard: Dashboard) -> None:
    """Add what the proxy sees of workers and clients; empty without the profile `scale`."""
    add(
        dashboard,
        "HAProxy",
        chart(
            "Workers that get requests",
            "By proxy. At 0 every request is answered with 503.",
            "short",
            (f"haproxy_backend_active_servers{{{BACKEND}}}", "{{instance}}"),
        ),
        chart(
            "Requests by worker",
            "Requests a second. They differ by the streams that the hash sends to each.",
            "reqps",
            (rate(f"server_http_responses_total{{{BACKEND}}}", " by (server)"), "{{server}}"),
            stacked=True,
        ),
        chart(
            "Errors of the proxy",
            "Share of requests that got a 5xx that no worker sent: none was reached, or none answered in time.",
            "percentunit",
            ("itan:proxy_errors:ratio5m", "5xx of its own"),
        ),
        chart(
            "Retries",
            "A second. retries: a worker took no connection. redispatches: another worker got the request instead.",
            "ops",
            (rate(f"backend_retry_warnings_total{{{BACKEND}}}"), "retries"),
            (rate(f"backend_redispatch_warnings_total{{{BACKEND}}}"), "redispatches"),
            (rate(f"backend_connection_errors_total{{{BACKEND}}}"), "failed connections"),
        ),
        chart(
            "Connections and queue",
            "Connections of clients, how many there may be, and requests that wait for a worker.",
            "short",
            (f"haproxy_frontend_current_sessions{{{FRONTEND}}}", "connections {{instance}}"),
            (f"min(haproxy_frontend_limit_sessions{{{FRONTEND}}})", "limit"),
            (f"haproxy_backend_current_queue{{{BACKEND}}}", "queue {{instance}}"),
        ),
        chart(
            "Time to answer, mean",
            "Of the last 1024 requests of each proxy. queue and connect should be near 0; response is the worker's.",
            "s",
            (f"haproxy_backend_queue_time_average_seconds{{{BACKEND}}}", "queue {{instance}}"),
            (f"haproxy_backend_connect_time_average_seconds{{{BACKEND}}}", "connect {{instance}}"),
            (f"haproxy_backend_response_time_average_seconds{{{BACKEND}}}", "response {{instance}}"),
        ),
    )
