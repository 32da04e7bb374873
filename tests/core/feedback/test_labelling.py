"""What people label, and how well the detector does afterwards: means over seeds that nothing was tuned on."""

from collections.abc import Callable

import numpy as np
import pytest

from app.replay.ranking import ranking_auc
from bench.everyday.run import LABELS, run_one
from core import Detector, DetectorConfig, Records
from core.arrays import BoolArray, FloatArray

Labels = Callable[[np.random.Generator, BoolArray, BoolArray], list[bool | None]]
"""From what is anomalous (n,) and what was flagged (n,): what is said of each; None for nothing."""

ROWS = 1600
CLEAN = 800
"""The last rows, without anomalies."""
KINDS = {
    "far": lambda rng, n: rng.normal([9.0, -9.0], 1.0, (n, 2)),
    "two kinds": lambda rng, n: rng.normal(size=(n, 2)) + np.where(rng.random((n, 1)) < 0.5, [7.0, 0.0], [0.0, -8.0]),
    "close": lambda rng, n: rng.normal(3.4, 0.4, (n, 2)),
}


def stream(kind: str, seed: int, *, run: int = 1) -> tuple[FloatArray, BoolArray]:
    """Normal samples, and runs of anomalies of a kind until the last CLEAN rows: two or three rows of a hundred."""
    rng = np.random.default_rng([seed, 3])
    X, anomalous = rng.normal(size=(ROWS, 2)), np.zeros(ROWS, bool)
    starts = rng.choice(np.arange(200, ROWS - CLEAN - run, 25), 24 // run, replace=False)
    anomalous[(starts[:, None] + np.arange(run)).ravel()] = True
    X[anomalous] = KINDS[kind](rng, int(anomalous.sum()))
    return X, anomalous


def lived(X: FloatArray, anomalous: BoolArray, labels: Labels | None, delay: int = 40) -> tuple[FloatArray, BoolArray]:
    """Scores and flags; labels come a block of 20 rows at a time, so late."""
    model, rng = Detector(DetectorConfig(n_features=X.shape[1])), np.random.default_rng(0)
    records: list[Records] = []
    for start in range(0, len(X), 20):
        records.append(model.observe(X[start : start + 20]).records)
        if labels is not None and start >= delay:
            told, rows = records[(start - delay) // 20], slice(start - delay, start - delay + 20)
            said = labels(rng, anomalous[rows], told.is_anomaly)
            chosen = [i for i, label in enumerate(said) if label is not None]
            if chosen:
                model.feedback(told[np.array(chosen)], [said[i] for i in chosen])
    return np.concatenate([r.score for r in records]), np.concatenate([r.is_anomaly for r in records])


def true_alarms(_rng, anomalous, flagged):
    return [True if a and f else None for a, f in zip(anomalous, flagged, strict=True)]


def all_flagged(_rng, anomalous, flagged):
    return [bool(a) if f else None for a, f in zip(anomalous, flagged, strict=True)]


def a_fifth(wrong: float) -> Labels:
    """A fifth of all samples, of which this share get the wrong label."""

    def labels(rng, anomalous, _flagged):
        return [bool(a) ^ (rng.random() < wrong) if rng.random() < 0.2 else None for a in anomalous]

    return labels


SEEDS = range(900, 906)


def false_alarms(kinds: list[str], labels: Labels | None) -> int:
    """In the clean stretches after anomalies of these kinds, single ones and incidents."""
    lives = [stream(kind, seed, run=run) for kind in kinds for run in (1, 8) for seed in SEEDS]
    return sum(int(lived(X, anomalous, labels)[1][-CLEAN:].sum()) for X, anomalous in lives)


def test_labelling_true_alarms_hardly_makes_the_detector_noisier():
    """Ten labels of one incident made 140 false alarms in the next thousand rows; now it is one in 4,000 at most."""
    print(f"seeds {SEEDS}")
    apart = ["far", "two kinds"]
    assert false_alarms(apart, true_alarms) <= 4 * len(SEEDS) * CLEAN / 4000


def test_labelling_alarms_close_to_normals_keeps_false_alarms_below_one_in_five_hundred():
    print(f"seeds {SEEDS}")
    assert false_alarms(["close"], true_alarms) <= 2 * len(SEEDS) * CLEAN / 500


def mean_auc(kind: str, labels: Labels | None) -> float:
    aucs = []
    for seed in SEEDS:
        X, anomalous = stream(kind, seed)
        score, _ = lived(X, anomalous, labels)
        aucs.append(ranking_auc(score[64:], anomalous[64:]) or 0.0)
    return float(np.mean(aucs))


@pytest.mark.parametrize("labels", [all_flagged, a_fifth(0.0), a_fifth(0.05), a_fifth(0.2)], ids=["f", "0", "5", "20"])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_flagged_samples_or_some_wrong_ones_do_no_harm(kind, labels):
    print(f"seeds {SEEDS}")
    assert mean_auc(kind, labels) > mean_auc(kind, None) - 0.01


def test_a_kind_that_nobody_labels_keeps_its_rank():
    """Known anomalies are of one kind, and then another comes."""
    aucs = {True: [], False: []}
    for seed in SEEDS:
        X, anomalous = stream("close", seed)
        rng = np.random.default_rng([seed, 4])
        late = rng.choice(np.arange(ROWS - CLEAN, ROWS), 20, replace=False)
        X[late] = rng.normal([-4.0, 4.0], 0.4, (20, 2))
        other = np.isin(np.arange(ROWS), late)
        for told in aucs:
            score, _ = lived(X, anomalous, a_fifth(0.0) if told else None)
            aucs[told].append(ranking_auc(score[-CLEAN:], other[-CLEAN:]))
    assert np.mean(aucs[True]) > max(0.97, np.mean(aucs[False]) - 0.02)


def test_spikes_after_a_level_shift_are_found_with_late_labels():
    """A fifth of the labels, 200 rows late: recall was .08 to .24 after a shift, and .52 after a large one."""
    shifts = [f"level shift {how}" for how in ("up", "down", "small", "large")]
    results = [result for name in shifts for seed in range(910, 913) for result in run_one((name, seed, False))]
    judged = [result.judgement for result in results if result.labels == LABELS]
    assert len(judged) == 12
    assert np.mean([judgement.recall or 0.0 for judgement in judged]) >= 0.7
    assert np.mean([judgement.false_share for judgement in judged]) <= 0.02
