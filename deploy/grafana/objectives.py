"""Rows of the service's dashboard: does /observe keep to its objectives."""

from grafana_foundation_sdk.builders.dashboard import Dashboard
from panels import add, chart

WINDOWS = ("1h", "6h", "3d")


def add_objectives(dashboard: Dashboard) -> None:
    """Add how fast the error budgets are used up, and how often the objectives are missed now."""
    failing = "itan:slo_failures:rate5m / (itan:slo_requests:rate5m > 0)"
    add(
        dashboard,
        "Objectives of /observe",
        chart(
            "Requests that miss them",
            "Share of the requests of 5 minutes. availability: answered with 5xx. latency: not within 0.5 s. "
            "They may be as many as the budget says (deploy/prometheus/rules/slo.yml).",
            "percentunit",
            (failing, "{{slo}}"),
            ("1 - itan:slo_objective:ratio", "budget of {{slo}}"),
            width=12,
        ),
        chart(
            "Error budgets, burn rate",
            "1 uses up the budget of 30 days in 30 days. Above 14.4 in an hour, or 6 in 6 hours, "
            "an alert wakes somebody.",
            "short",
            *((f"itan:slo_burn:ratio{window}", f"{{{{slo}}}}, {window}") for window in WINDOWS),
            width=12,
        ),
    )
