"""The table of a contest, for people."""

from collections.abc import Sequence

from app.replay.rivals.comparison import Contest
from app.replay.rivals.judging import Standing

HEADINGS = ("", "AUC", "AP", "precision", "recall", "F1", "cost", "false alarms", "events found")


def format_contest(contest: Contest) -> str:
    """Write an aligned table, and its notes."""
    lines = [HEADINGS, *map(cells_of, contest.standings)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADINGS))]
    said = f"Compared on {contest.judged.sum()} samples that have a label, and a score of each:"
    return "\n".join([said, *(_line(line, widths) for line in lines), *contest.notes])


def cells_of(standing: Standing) -> tuple[str, ...]:
    """Give the cells of a row as text; false alarms a day if there are times, else their number."""
    shares = (standing.ranking_auc, standing.average_precision, standing.precision, standing.recall, standing.f1)
    daily = standing.false_alarms_a_day
    alarms = f"{standing.false_alarms}" if daily is None else f"{daily:.3g} a day"
    found = f"{standing.events_found} of {standing.events}"
    return (standing.name, *map(_share, shares), f"{standing.cost:g}", alarms, found)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.rjust(w) if place else cell.ljust(w) for place, (cell, w) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
