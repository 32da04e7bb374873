"""Our detector on every series, by one severity for all and by its own decisions; and the published detectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from bench.nab.corpus import HALVES, Series, halves, published, published_scores, read_corpus
from bench.nab.scoring import Outcome, best_outcome, flags_outcome, outcome_at
from bench.tables import Cell, Column, Table, versions
from core import INCIDENT_EVENTS, Detector, DetectorConfig
from core.arrays import BoolArray, FloatArray, IntArray

SEVERITY: Final = "one severity for all series, once an incident"
EVERY_SEVERITY: Final = "one severity for all series, every sample"
OPENINGS: Final = "own decisions: openings of incidents"
FLAGS: Final = "own decisions: every flag"
WHOLE: Final = "whole"


@dataclass(frozen=True, slots=True)
class Answers:
    """A detector's answers to one series: severities, incidents (0 for none), openings and flags, each (n,)."""

    severity: FloatArray
    incident: IntArray
    opened: BoolArray
    flagged: BoolArray


def answers(series: Series) -> Answers:
    """Our detector with its defaults on the values alone: no labels, no clock, each sample decided at once."""
    detector = Detector(DetectorConfig(n_features=1))
    seen = detector.observe(series.values[:, None])
    return Answers(seen.severity, seen.incident, seen.event == INCIDENT_EVENTS.index("opened"), seen.is_anomaly)


def notices(severity: FloatArray, incident: IntArray) -> FloatArray:
    """Severities, NaN where the incident was at least as severe before: whoever asks for x is told once an incident.

    >>> notices(np.array([1.0, 3.0, 2.0, 4.0, 3.0]), np.array([0, 2, 2, 2, 0])).tolist()
    [1.0, 3.0, nan, 4.0, 3.0]
    """
    told = severity.copy()
    worst: dict[int, float] = {}
    for i in np.flatnonzero(incident).tolist():
        before = worst.get(int(incident[i]), -np.inf)
        worst[int(incident[i])] = max(before, severity[i])
        if severity[i] <= before:
            told[i] = np.nan
    return told


def run(folder: Path, limit: int | None = None) -> list[Table]:
    """Run the benchmark on a checkout of its repository; limit: the most series of each half."""
    corpus = read_corpus(folder)
    parts = {half: part[:limit] for half, part in halves(corpus).items()}
    chosen = [series for part in parts.values() for series in part]
    ours = {series.name: answers(series) for series in chosen}
    return [_our_table({WHOLE: chosen, **parts}, ours), _published_table(folder, corpus)]


def _our_table(parts: Mapping[str, Sequence[Series]], ours: Mapping[str, Answers]) -> Table:
    severity = {name: notices(answer.severity, answer.incident) for name, answer in ours.items()}
    every = {name: answer.severity for name, answer in ours.items()}
    tuned = best_outcome(parts[HALVES[0]], severity).threshold
    rows: list[dict[str, Cell]] = []
    for part, corpus in parts.items():
        rows.append(_row(part, SEVERITY, best_outcome(corpus, severity)))
        if part == HALVES[1]:
            rows.append(_row(part, f"{SEVERITY}, threshold of the tuning half", outcome_at(corpus, severity, tuned)))
        rows.append(_row(part, EVERY_SEVERITY, best_outcome(corpus, every)))
        rows.append(_row(part, OPENINGS, flags_outcome(corpus, {k: a.opened for k, a in ours.items()})))
        rows.append(_row(part, FLAGS, flags_outcome(corpus, {k: a.flagged for k, a in ours.items()})))
    columns = [
        Column("part", "series"),
        Column("by", "flagged by"),
        Column("score", "standard score", ".1f"),
        Column("found", "windows found"),
        Column("false_alarms", "false alarms", "d"),
        Column("threshold", "threshold", ".4g"),
    ]
    notes = [
        "The default profile on the values alone, without labels; each sample is decided before the next is seen.",
        "The best severity for all series of a part, as the benchmark does it. Once an incident: a row counts if it is "
        "more severe than all before it of its incident.",
        "The halves: every second series, in the order of the SHA-256 of their names; tuning uses only the first half.",
        f"{versions('numpy', 'scipy')}.",
    ]
    return Table("Numenta Anomaly Benchmark, profile standard", columns, rows, notes)


def _row(part: str, by: str, outcome: Outcome) -> dict[str, Cell]:
    return {
        "part": part,
        "by": by,
        "score": outcome.score,
        "found": f"{outcome.found} of {outcome.windows}",
        "false_alarms": outcome.false_alarms,
        "threshold": outcome.threshold if by.startswith("one severity") else None,
    }


def _published_table(folder: Path, corpus: Sequence[Series]) -> Table:
    """The published detectors by this scorer, beside the published scores: a check of the scorer."""
    said = published(folder)
    rows: list[dict[str, Cell]] = []
    for name, scores in published_scores(folder, list(corpus)):
        by_half = {half: best_outcome(part, scores).score for half, part in halves(list(corpus)).items()}
        rows.append({"detector": name, "published": said[name], "score": best_outcome(corpus, scores).score, **by_half})
    columns = [
        Column("detector", "detector"),
        Column("published", "published", ".2f"),
        Column("score", "by this scorer", ".2f"),
        *(Column(half, half, ".1f") for half in HALVES),
    ]
    rows.sort(key=lambda row: str(row["detector"]).lower())
    return Table(
        "Detectors whose results the checkout holds", columns, rows, ["One threshold for all series of a part."]
    )
