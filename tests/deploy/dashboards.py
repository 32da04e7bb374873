"""The committed dashboards, as Grafana would ask for them."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
DASHBOARDS: dict[str, Any] = {
    path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))
}


class Asked(NamedTuple):
    """An expression of a panel, and the labels that its legend shows."""

    panel: str
    expr: str
    legend_labels: list[str]


def panels(dashboard: str) -> list[dict[str, Any]]:
    """Give the panels that are not rows."""
    return [panel for panel in DASHBOARDS[dashboard]["panels"] if panel["type"] != "row"]


def asked(variables: dict[str, str]) -> list[Asked]:
    """Give every expression of all dashboards, its variables replaced."""
    return [
        Asked(
            f"{name}: {panel['title']}",
            replaced(target["expr"], variables),
            re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]),
        )
        for name in DASHBOARDS
        for panel in panels(name)
        for target in panel["targets"]
    ]


def choices() -> list[tuple[str, str]]:
    """Give (label, selector) of every variable that is asked of Prometheus."""
    return [
        (found[2], found[1])
        for dashboard in DASHBOARDS.values()
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query" and (found := re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]))
    ]


def replaced(expr: str, variables: dict[str, str]) -> str:
    """Put values in the place of variables; one that is not known fails."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: variables[found[1]], expr)
