"""Puts the page together; the template escapes whatever comes from the file."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from app.build import installed_version
from app.replay.evaluation import Evaluation
from app.replay.feed import Plan
from app.replay.page.pictures import curves, over_time
from app.replay.page.words import SCORE, SEVERITY, in_short, not_said
from app.replay.reading.table import Table
from app.replay.rivals.table import HEADINGS, cells_of
from app.replay.run import Result
from itan_client import Incident

MOST_FEATURES: Final = 3


def write_page(evaluation: Evaluation, path: Path, now: datetime) -> None:
    """Write the page as one file."""
    path.write_text(render(evaluation, now), encoding="utf-8")


def render(evaluation: Evaluation, now: datetime) -> str:
    """Give the page as HTML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(Path(__file__).parent)
    engine = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    report = evaluation.result.report
    contest = evaluation.contest if evaluation.contest and evaluation.contest.has_both_kinds else None
    return engine.get_template("page.html.jinja").render(
        file=printable("stdin" if evaluation.file == "-" else Path(evaluation.file).name),
        report=report,
        version=installed_version(),
        made=now.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        in_short=in_short(report, contest),
        notes=[printable(note) for note in report.notes],
        survey=evaluation.table.survey(),
        columns=_columns(evaluation.table, report.context),
        left_out=[printable(name) for name in evaluation.table.left_out],
        settings=_settings(evaluation.plan, evaluation.result),
        headings=HEADINGS[1:],
        standings=[cells_of(standing) for standing in contest.standings] if contest else [],
        how_compared=contest.notes if contest else [],
        n_judged=int(contest.judged.sum()) if contest else 0,
        n_anomalous=int((contest.judged & contest.anomalous).sum()) if contest else 0,
        over_time=over_time(evaluation.result.outcome, evaluation.signals),
        curves=curves(contest) if contest else "",
        incidents=[_incident(it, report.timestamps is not None) for it in evaluation.incidents],
        score_means=SCORE,
        severity_means=SEVERITY,
        not_said=not_said(report, contest),
    )


def printable(text: str) -> str:
    """Replace what has no shape: control characters, and those that turn the direction of what follows."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _columns(table: Table, context: Sequence[str]) -> list[tuple[str, ...]]:
    """Give name, role, values, missing, lowest and highest of each column that was used."""
    features = [
        (
            tally.name,
            "context" if tally.name in context else "feature",
            *(f"{count:,}" for count in (tally.n_values, tally.n_missing)),
            *(f"{edge:.6g}" for edge in (tally.low, tally.high)),
        )
        for tally in table.survey().columns
    ]
    roles = (("label", table.columns.label), ("time", table.columns.timestamp), ("id", table.columns.id))
    others = [(name, role, "", "", "", "") for role, name in roles if name]
    return [(printable(name), *rest) for name, *rest in [*features, *others]]


def _settings(plan: Plan, result: Result) -> list[tuple[str, str]]:
    """Give how the labels came, and the config of the stream."""
    config = {name: value for name, value in result.stream.config.items() if name != "features" and value is not None}
    sent = [
        ("label delay", f"{plan.label_delay} samples"),
        ("labels sent", "each when due" if plan.label_every == 1 else f"after every {plan.label_every} samples"),
        ("share of labels", f"{plan.label_rate:.0%}" + (f", seed {plan.seed}" if plan.label_rate < 1 else "")),
    ]
    return sent + [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in config.items()]


def _incident(incident: Incident, has_times: bool) -> dict[str, Any]:
    features = sorted(incident.features, key=lambda it: -it.contribution)[:MOST_FEATURES]
    return {
        "severity": f"{incident.peak_severity:.1f}",
        "score": f"{incident.peak_score:.6g}",
        "begin": _moment(incident.begin) if has_times else f"sample {incident.incident}",
        "n_flagged": incident.n_flagged,
        "labels": f"{incident.n_anomalous} anomalous, {incident.n_normal} normal",
        "features": [
            (printable(it.name), "missing" if it.value is None else f"{it.value:.6g}", f"{it.expected:.6g}")
            for it in features
        ],
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
