"""Our detector on every series, by one severity for all and by its own decisions; and the published detectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from bench.nab.corpus import HALVES, Series, halves, published, published_scores, read_corpus
from bench.nab.scoring import Outcome, best_outcome, flags_outcome, outcome_at
from bench.tables import Cell, Column, Table, versions
from core import Detector, DetectorConfig
from core.arrays import BoolArray, FloatArray

CLOSED_AFTER: Final = 8
"""An incident ends after this many samples without a flag."""
SEVERITY: Final = "one severity for all series"
OPENINGS: Final = "own decisions: openings of incidents"
FLAGS: Final = "own decisions: every flag"
WHOLE: Final = "whole"


@dataclass(frozen=True, slots=True)
class Answers:
    """A detector's answers to one series: how far each sample is above the threshold, and which it flagged."""

    severity: FloatArray
    flagged: BoolArray


def answers(series: Series) -> Answers:
    """Our detector with its defaults on the values alone: no labels, no clock, each sample decided at once."""
    detector = Detector(DetectorConfig(n_features=1))
    seen = detector.observe(series.values[:, None])
    return Answers(np.where(seen.ready, seen.score - seen.threshold, np.nan), seen.is_anomaly)


def openings(flagged: BoolArray) -> BoolArray:
    """The first flag of each incident.

    >>> openings(np.array([0, 1, 1, 0, 1] + [0] * 8 + [1], bool)).nonzero()[0].tolist()
    [1, 13]
    """
    rows = np.flatnonzero(flagged)
    opens = np.diff(rows, prepend=-CLOSED_AFTER - 2) > CLOSED_AFTER
    result = np.zeros(len(flagged), bool)
    result[rows[opens]] = True
    return result


def run(folder: Path, limit: int | None = None) -> list[Table]:
    """Run the benchmark on a checkout of its repository; limit: the most series of each half."""
    corpus = read_corpus(folder)
    parts = {half: part[:limit] for half, part in halves(corpus).items()}
    chosen = [series for part in parts.values() for series in part]
    ours = {series.name: answers(series) for series in chosen}
    return [_our_table({WHOLE: chosen, **parts}, ours), _published_table(folder, corpus)]


def _our_table(parts: Mapping[str, Sequence[Series]], ours: Mapping[str, Answers]) -> Table:
    severity = {name: answer.severity for name, answer in ours.items()}
    tuned = best_outcome(parts[HALVES[0]], severity).threshold
    rows: list[dict[str, Cell]] = []
    for part, corpus in parts.items():
        rows.append(_row(part, SEVERITY, best_outcome(corpus, severity)))
        if part == HALVES[1]:
            rows.append(_row(part, f"{SEVERITY}, threshold of the tuning half", outcome_at(corpus, severity, tuned)))
        rows.append(_row(part, OPENINGS, flags_outcome(corpus, {k: openings(a.flagged) for k, a in ours.items()})))
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
        "Severity: nats above the threshold. The best threshold for all series of a part, as the benchmark does it.",
        f"An incident ends after {CLOSED_AFTER} samples without a flag.",
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
        "threshold": outcome.threshold if by.startswith(SEVERITY) else None,
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
