"""Writes what the service said of each sample as CSV."""

import csv
from pathlib import Path

from app.replay.feed import Outcome


def write_scores(outcome: Outcome, path: Path) -> None:
    """Write one line for each sample: seq, score, threshold, severity, flag, incident, label."""
    said = (outcome.seq, outcome.score, outcome.threshold, outcome.severity)
    columns = (*said, map(int, outcome.flag), outcome.incident, outcome.label)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["seq", "score", "threshold", "severity", "flag", "incident", "label"])
        # csv writes a float by repr, which reads back as the same float
        writer.writerows(
            (*cells, None if label is None else int(label)) for *cells, label in zip(*columns, strict=True)
        )
