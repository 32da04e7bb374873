"""All that is known after a replay, and what the service adds to it while it runs."""

from dataclasses import dataclass
from typing import Final

from app.replay.feed import Plan
from app.replay.reading.table import Table
from app.replay.rivals.comparison import Contest, Watch, compare_rivals
from app.replay.run import Result
from app.replay.signals import Signal, signals_of
from itan_client import Client, Incident

MOST_INCIDENTS: Final = 15


@dataclass(frozen=True)
class Evaluation:
    """A replay's file, settings and results; contest is None without labels, signals are there if samples were kept.

    incidents are the most severe ones first, of those that the service still knows.
    """

    file: str
    table: Table
    plan: Plan
    result: Result
    contest: Contest | None
    signals: list[Signal]
    incidents: list[Incident]


def evaluate(
    client: Client,
    file: str,
    table: Table,
    plan: Plan,
    result: Result,
    watch: Watch,
    *,
    with_rivals: bool,
) -> Evaluation:
    """Look at what a replay left; `watch` shows how far the rivals are."""
    if not plan.keeps_rows:
        return Evaluation(file, table, plan, result, None, [], [])
    contest = None
    if table.columns.label and result.outcome.score:
        contest = compare_rivals(result.outcome, result.stream.config, watch, with_rivals=with_rivals)
    signals = signals_of(client, result.report, result.outcome)
    return Evaluation(file, table, plan, result, contest, signals, _worst_incidents(client, result))


def _worst_incidents(client: Client, result: Result) -> list[Incident]:
    first = result.outcome.seq[0] if result.outcome.seq else 0
    known = [it for it in client.incidents(stream=result.report.stream) if it.incident >= first]
    return sorted(known, key=lambda it: (-it.peak_severity, it.incident))[:MOST_INCIDENTS]
