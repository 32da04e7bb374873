"""The results of a replay: how well the scores rank, what the decisions cost, how fast it was."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from app.counts import counted
from app.replay.feed import Outcome, Plan
from app.replay.ranking import average_precision, best_fixed_threshold, ranking_auc
from app.severity import meaning
from itan_client import Stream


@dataclass(frozen=True)
class Report:
    """Figures of one replay; ranking and costs cover the samples that have a score and a label in the file.

    context names the features that are context, timestamps the column of the times that were sent. notes say what was
    guessed about the file. Labels came label_delay samples late, or up to label_every - 1 later.
    most_severe is the seq of the sample of the highest severity. longest_incident is in samples, from the one that
    opened it to the one that ended it.
    """

    stream: str
    features: list[str] | None
    context: list[str]
    calendar: dict[str, Any] | None
    timestamps: str | None
    notes: list[str]
    label_delay: int
    label_every: int
    samples: int
    not_scored: int
    labelled: int
    anomalies: int
    labels_sent: int
    label_outcomes: dict[str, int]
    seconds: float
    samples_per_second: float
    ranking_auc: float | None
    average_precision: float | None
    flags: int
    true_alarms: int
    false_alarms: int
    misses: int
    incidents: int
    longest_incident: int
    accepted_incidents: int
    most_severe: int | None
    highest_severity: float | None
    cost_false_negative: float
    cost_false_positive: float
    cost: float
    best_fixed_cost: float
    best_fixed_threshold: float | None
    threshold: float | None
    last_seq: int | None
    stopped: bool

    @property
    def label_delays(self) -> str:
        """Say how many samples late the labels came."""
        latest = self.label_delay + self.label_every - 1
        return f"{self.label_delay} samples" if self.label_every == 1 else f"{self.label_delay} to {latest} samples"

    def to_dict(self) -> dict[str, Any]:
        """Give the figures as one JSON document."""
        return asdict(self)


def make_report(
    outcome: Outcome, plan: Plan, seconds: float, stream: Stream, timestamps: str | None, notes: Sequence[str]
) -> Report:
    """Sum up an outcome; `stream` is the stream after it, for its costs and its threshold."""
    config = stream.config
    cost_miss, cost_false_alarm = config["cost_false_negative"], config["cost_false_positive"]
    judged = [
        i for i, (s, y) in enumerate(zip(outcome.score, outcome.label, strict=True)) if s is not None and y is not None
    ]
    score = np.array([outcome.score[i] for i in judged], dtype=np.float64)
    anomalous = np.array([outcome.label[i] for i in judged], dtype=np.bool_)
    flag = np.array([outcome.flag[i] for i in judged], dtype=np.bool_)
    false_alarms, misses = int((flag & ~anomalous).sum()), int((anomalous & ~flag).sum())
    best = best_fixed_threshold(score, anomalous, cost_miss, cost_false_alarm)
    scored = [place for place, severity in enumerate(outcome.severity) if severity is not None]
    worst = max(scored, key=lambda place: outcome.severity[place] or 0.0, default=0)
    return Report(
        stream=stream.stream,
        features=None if config["features"] is None else [feature["name"] for feature in config["features"]],
        context=[feature["name"] for feature in config["features"] or () if feature["role"] == "context"],
        calendar=config["calendar"],
        timestamps=timestamps,
        notes=list(notes),
        label_delay=plan.label_delay,
        label_every=plan.label_every,
        samples=len(outcome.score),
        not_scored=outcome.score.count(None),
        labelled=len(judged),
        anomalies=int(anomalous.sum()),
        labels_sent=outcome.label_outcomes.total(),
        label_outcomes=dict(outcome.label_outcomes),
        seconds=seconds,
        samples_per_second=len(outcome.score) / seconds if seconds else 0.0,
        ranking_auc=ranking_auc(score, anomalous),
        average_precision=average_precision(score, anomalous),
        flags=sum(outcome.flag),
        true_alarms=int((flag & anomalous).sum()),
        false_alarms=false_alarms,
        misses=misses,
        incidents=outcome.incident_events["opened"],
        longest_incident=max(Counter(filter(None, outcome.incident)).values(), default=0),
        most_severe=outcome.seq[worst] if scored else None,
        highest_severity=outcome.severity[worst] if scored else None,
        accepted_incidents=outcome.incident_events["accepted"],
        cost_false_negative=cost_miss,
        cost_false_positive=cost_false_alarm,
        cost=cost_miss * misses + cost_false_alarm * false_alarms,
        best_fixed_cost=best.cost,
        best_fixed_threshold=best.threshold if judged else None,
        threshold=stream.threshold,
        last_seq=outcome.seq[-1] if outcome.seq else None,
        stopped=outcome.stopped,
    )


def format_report(report: Report) -> str:
    """Write the figures for people, one a line."""
    outcomes = ", ".join(f"{n} {outcome}" for outcome, n in sorted(report.label_outcomes.items()))
    right, wrong = counted(report.true_alarms, "true alarm"), counted(report.false_alarms, "false alarm")
    lines = {
        "stream": f"{report.stream}, up to seq {report.last_seq}" + (" (stopped early)" if report.stopped else ""),
        "features": ", ".join(report.features or ["not named"]),
        "context": _context(report),
        "samples": f"{report.samples} in {report.seconds:.2f} s, {report.samples_per_second:.0f} a second",
        "not scored": f"{report.not_scored} (warm-up)",
        "judged": f"{report.labelled}, {report.anomalies} of them anomalous",
        "labels sent": f"{report.labels_sent}" + (f" ({outcomes})" if outcomes else ""),
        "label delay": _delay(report),
        "ranking AUC": _number(report.ranking_auc),
        "average precision": _number(report.average_precision),
        "flags": f"{report.flags}: {right}, {wrong}",
        "misses": f"{report.misses}",
        "incidents": _incidents(report),
        "most severe": "-"
        if report.most_severe is None
        else f"seq {report.most_severe}. {meaning(report.highest_severity)}",
        "cost": f"{report.cost:g} (miss {report.cost_false_negative:g}, false alarm {report.cost_false_positive:g})",
        "flagging nothing": f"would have cost {report.cost_false_negative * report.anomalies:g}",
        "best fixed threshold": f"{_number(report.best_fixed_threshold)}, would have cost {report.best_fixed_cost:g}",
        "threshold at the end": _number(report.threshold),
    }
    return "\n".join(f"{name:<21} {value}" for name, value in lines.items())


def _delay(report: Report) -> str:
    if report.label_every == 1:
        return f"{report.label_delays}, exactly"
    return f"{report.label_delays}: sent after every {report.label_every} (--exact-delay sends each alone)"


def _context(report: Report) -> str:
    known = list(report.context)
    if report.calendar is not None:
        periods, zone = map(str, report.calendar["periods"]), report.calendar["timezone"]
        known.append(f"{' and '.join(periods)} ({zone}) by the column {report.timestamps}")
    return ", ".join(known) or "none"


def _incidents(report: Report) -> str:
    if not report.longest_incident:
        return "0"
    accepted = f", {report.accepted_incidents} accepted as the new normal" if report.accepted_incidents else ""
    return f"{report.incidents}, the longest of {report.longest_incident} samples{accepted}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
