"""What the page says in sentences: the result in short, and what its numbers do not say."""

from typing import Final

from app.counts import counted
from app.replay.report import Report
from app.replay.rivals.comparison import HINDSIGHT, OURS, Contest
from app.replay.rivals.judging import Standing

FEW_EVENTS: Final = 20
SCORE: Final = (
    "A score is -log of the density that the model expects at a sample, in nats: each nat more is e times as unlikely."
    " Scores of different streams cannot be compared; severities can."
)
SEVERITY: Final = (
    "Severity says how rare a score is among ordinary samples: 1 is one in 10, 2 is one in 100. Beyond 2 it still ranks"
    " samples, but is no longer a probability."
)


def in_short(report: Report, contest: Contest | None) -> list[str]:
    """Say what came out."""
    sent, incidents = counted(report.samples, "sample"), counted(report.incidents, "incident")
    said = [f"{sent}, {report.flags} of them flagged in {incidents}."]
    if contest is None:
        return [*said, "There are no labels of both kinds, so nothing can be said about how right that was."]
    rows = {standing.name: standing for standing in contest.standings}
    ours, bound = rows[OURS], rows[HINDSIGHT]
    said.append(
        f"It found {ours.events_found} of {counted(ours.events, 'event')}, with"
        f" {counted(ours.false_alarms, 'false alarm')}{_daily(ours)}."
    )
    said.append(
        f"The decisions cost {ours.cost:g}. The best fixed threshold, known in hindsight, would have cost"
        f" {bound.cost:g}."
    )
    nothing = report.cost_false_negative * int((contest.judged & contest.anomalous).sum())
    said.append(f"To flag nothing at all would have cost {nothing:g}.")
    if rivals := [standing for standing in contest.standings if standing.name not in (OURS, HINDSIGHT)]:
        cheapest = min(rivals, key=lambda standing: standing.cost)
        said.append(f"The cheapest of the others, {cheapest.name}, cost {cheapest.cost:g}.")
    return said


def not_said(report: Report, contest: Contest | None) -> list[str]:
    """Say what the numbers leave out."""
    said = [f"The first {report.not_scored:,} samples are the warm-up: they have no score and are not judged."]
    if contest is None:
        return said
    n_judged = int(contest.judged.sum())
    said += [
        f"{n_judged:,} of {report.samples:,} samples are judged: those with a label, and a score in every row of the"
        " table.",
        f"Each decision used only the labels that had come by then, {report.label_delays} late. With other delays, or"
        " fewer labels, the same stream decides otherwise.",
        f"{report.labels_sent:,} labels were sent. The figures use all labels of the file, also those that were not.",
        "The labels are taken for the truth. Where they are wrong, right decisions count as errors.",
        "This is one file in one order. Another month may look different.",
    ]
    if contest.standings[0].events < FEW_EVENTS:
        said.append(f"{counted(contest.standings[0].events, 'event')} in the file: one more or less changes much.")
    return said


def _daily(standing: Standing) -> str:
    return "" if standing.false_alarms_a_day is None else f" ({standing.false_alarms_a_day:.2g} a day)"
