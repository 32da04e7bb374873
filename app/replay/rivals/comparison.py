"""Rivals on what a replay sent, with the labels that it sent and when, and one table of all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from app.replay.feed import Outcome
from app.replay.ranking import best_fixed_threshold
from app.replay.rivals.detector import OwnDetector
from app.replay.rivals.judging import Standing, judge
from app.replay.rivals.rival import Bools, Decisions, Floats, Rival
from app.replay.rivals.threshold import CheapestCut, Cut, Given
from app.replay.rivals.trees import TREES_WINDOW, Trees
from app.replay.rivals.windows import Windowed, z_score
from core import DetectorConfig, ItanError

STEP: Final = 100
FIXED_AFTER: Final = 0.2
OURS: Final = "itan"
FIXED: Final = "itan, fixed threshold"
HINDSIGHT: Final = "itan, best threshold in hindsight"
SHARED_FIELDS: Final = ("cost_false_negative", "cost_false_positive", "expected_anomaly_rate")
Watch = Callable[[int], AbstractContextManager[Callable[[int], object]]]
"""Opens, for so many samples to decide, what is told of each number of them that is decided."""
THRESHOLDS: Final = (
    "Thresholds of rivals without one: after every 100 samples and whenever labels came, the one that would have cost"
    " least on the labels known by then; before the first known anomaly, the quantile that leaves the expected share"
    " of anomalies above it."
)


@dataclass(frozen=True)
class Contest:
    """The scores and decisions of all on the same samples; `judged` says which samples count."""

    decisions: dict[str, Decisions]
    standings: list[Standing]
    judged: Bools
    anomalous: Bools
    notes: list[str]

    @property
    def has_both_kinds(self) -> bool:
        """Tell whether anomalies and normal samples were judged."""
        truth = self.anomalous[self.judged]
        return bool(truth.any() and not truth.all())

    def by_own_scores(self) -> dict[str, Decisions]:
        """Leave out the rows that only cut the stream's scores elsewhere."""
        return {name: each for name, each in self.decisions.items() if name not in (FIXED, HINDSIGHT)}

    def to_dict(self) -> dict[str, Any]:
        """Give the table as JSON-able values."""
        standings = [asdict(standing) for standing in self.standings]
        return {"judged": int(self.judged.sum()), "standings": standings, "notes": self.notes}


def compare_rivals(
    outcome: Outcome, config: Mapping[str, Any], watch: Watch | None = None, *, with_rivals: bool = True
) -> Contest:
    """Run every rival over the samples of an outcome that kept them; `config` is that of the stream.

    Without rivals the table is that of the stream alone.
    """
    n = len(outcome.score)
    ours = Decisions(np.array(outcome.score, dtype=np.float64), np.array(outcome.flag, dtype=np.bool_))
    rivals, notes = _rivals(n, ours.score, config) if with_rivals else ({}, [])
    decisions = {OURS: ours} | _play_all(rivals, outcome, watch or _unwatched)
    known = np.array([label is not None for label in outcome.label], dtype=np.bool_)
    judged = known & ~np.any([np.isnan(each.score) for each in decisions.values()], axis=0)
    anomalous = np.array([label is True for label in outcome.label], dtype=np.bool_)
    decisions[HINDSIGHT] = _in_hindsight(ours.score, judged, anomalous, costs_of(config))
    standings = [
        judge(name, each, judged, anomalous, outcome.times, costs_of(config)) for name, each in decisions.items()
    ]
    return Contest(decisions, standings, judged, anomalous, notes)


def costs_of(config: Mapping[str, Any]) -> tuple[float, float]:
    """Give the costs of a miss and of a false alarm."""
    return config["cost_false_negative"], config["cost_false_positive"]


def _rivals(n: int, our_scores: Floats, config: Mapping[str, Any]) -> tuple[dict[str, Rival], list[str]]:
    """Make the rivals, and say what they are, and which are not there."""
    rivals: dict[str, Rival] = {}
    notes = [THRESHOLDS]

    def cut(frozen_after: int | None = None) -> CheapestCut:
        return CheapestCut(costs_of(config), config["expected_anomaly_rate"], frozen_after)

    other = "default" if config["profile"] == "paper" else "paper"
    try:
        rivals[f"itan, {other} profile"] = OwnDetector(_profile_config(other, config))
        notes += ["The paper's profile knows no calendar."] if config["calendar"] else []
    except ItanError as error:
        notes.append(f"The {other} profile is not there: {error}.")
    rivals[FIXED] = Cut(Given(our_scores), cut(int(n * FIXED_AFTER)), n)
    notes.append(
        "The fixed threshold is chosen like that too, until a fifth of the samples have passed; then it stays."
    )
    rivals["rolling z-score"] = Cut(Windowed(z_score), cut(), n)
    notes.append("The rolling z-score is the largest of all features, by mean and deviation of the last 256 samples.")
    if find_spec("river") is None:
        notes.append("Half-space trees are not there: river is not installed: uv run --extra evaluate itan replay ....")
    elif n < 2 * TREES_WINDOW:
        notes.append(f"Half-space trees are not there: they need {TREES_WINDOW} samples before their first score.")
    else:
        rivals["half-space trees"] = Cut(Trees(), cut(), n)
        notes.append("Half-space trees are river's, with its defaults behind its MinMaxScaler.")
    return rivals, notes


def _profile_config(profile: str, config: Mapping[str, Any]) -> DetectorConfig:
    features = {"features": config["features"]} if config["features"] else {"n_features": config["n_features"]}
    return DetectorConfig(**features, profile=profile, **{name: config[name] for name in SHARED_FIELDS})


def _unwatched(_: int) -> AbstractContextManager[Callable[[int], object]]:
    return nullcontext(lambda _: None)


def _play_all(rivals: Mapping[str, Rival], outcome: Outcome, watch: Watch) -> dict[str, Decisions]:
    if not rivals:
        return {}
    with watch(len(rivals) * len(outcome.score)) as decided:
        return {name: _play(rival, outcome, decided) for name, rival in rivals.items()}


def _play(rival: Rival, outcome: Outcome, decided: Callable[[int], object]) -> Decisions:
    """Let a rival decide all samples, and give it the labels when the stream got them."""
    X, times, labels = outcome.values, outcome.times, outcome.label
    scores, flagged = np.empty(len(X)), np.zeros(len(X), np.bool_)
    for begin, end, sent in _steps(len(X), outcome.sent):
        part = slice(begin, end)
        scores[part], flagged[part] = rival.decide(X[part], None if times is None else times[part])
        positions = np.array(sent, dtype=np.int64)
        rival.label(positions, np.array([labels[position] for position in sent], dtype=np.bool_))
        decided(end - begin)
    return Decisions(scores, flagged)


def _steps(n: int, sent: Sequence[tuple[int, list[int]]]) -> Iterator[tuple[int, int, list[int]]]:
    """Cut n samples where labels came, and after every 100; give the labels that came at each end."""
    labels_at: dict[int, list[int]] = {}
    for after, positions in sent:
        labels_at.setdefault(after, []).extend(positions)
    ends = sorted({*range(STEP, n, STEP), *(after for after in labels_at if 0 < after <= n), n})
    begin = 0
    for end in ends:
        yield begin, end, labels_at.get(end, [])
        begin = end


def _in_hindsight(score: Floats, judged: Bools, anomalous: Bools, costs: tuple[float, float]) -> Decisions:
    best = best_fixed_threshold(score[judged], anomalous[judged], *costs)
    return Decisions(score, score > best.threshold)
