"""The panels of both dashboards: each says what it shows, in which unit, and reads Prometheus."""

from typing import Any

from grafana_foundation_sdk.builders import common, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef("prometheus", "${datasource}")
Query = tuple[str, str]
Steps = list[tuple[float, str]]
"""Colours by the value from which they hold; below the first it is green."""


def board(uid: str, title: str, description: str, *, other: tuple[str, str]) -> Dashboard:
    """Begin a dashboard, with a link to the other one (uid, title)."""
    link = DashboardLink(other[1]).type(DashboardLinkType.LINK).url(f"/d/{other[0]}").icon("dashboard").keep_time(True)
    return (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["itan"])
        .link(link)
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )


def add(dashboard: Dashboard, title: str, *panels: Any) -> None:
    """Add a row of panels."""
    dashboard.with_row(Row(title))
    for panel in panels:
        dashboard.with_panel(panel)


def number(title: str, description: str, unit: str, expr: str, steps: Steps, *, low: str = "green") -> stat.Panel:
    """Show the newest value, coloured by how bad it is."""
    colours = [Threshold(None, low), *(Threshold(value, colour) for value, colour in steps)]
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(3)
        .height(4)
        .color_mode(BigValueColorMode.BACKGROUND if steps else BigValueColorMode.NONE)
        .graph_mode(BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(colours))
        .with_target(query("A", expr, title))
    )


def chart(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 8,
    stacked: bool = False,
    links: list[Any] | None = None,
) -> timeseries.Panel:
    """Draw lines over time, one for each series of each (expression, legend)."""
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.BOTTOM)
    tooltip = common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(9)
        .line_width(1)
        .fill_opacity(40 if stacked else 5)
        .stacking(common.StackingConfig().mode(StackingMode.NORMAL if stacked else StackingMode.NONE))
        .legend(legend.show_legend(True).calcs(["lastNotNull", "max"]))
        .tooltip(tooltip)
        .data_links(links or [])
    )
    for letter, (expr, name) in zip("ABCDEFGH", queries, strict=False):
        panel.with_target(query(letter, expr, name))
    return panel


def buckets(title: str, description: str, name: str, *, width: int = 12) -> heatmap.Panel:
    """Draw a histogram of all workers over time."""
    expr = f"sum by (le) (increase({name}_bucket[$__rate_interval]))"
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(width)
        .height(9)
        .calculate(False)
        .show_tooltip()
        .with_target(query("A", expr, "{{le}}").format(PromQueryFormat.HEATMAP))
    )


def query(letter: str, expr: str, legend: str) -> prometheus.Dataquery:
    """Ask Prometheus for a range."""
    return prometheus.Dataquery().ref_id(letter).datasource(SOURCE).expr(expr).legend_format(legend).range()
