"""The fast core against the oracle at every prefix of seeded streams (stumpy's naive.py is the example)."""

from typing import Any

import numpy as np
import pytest

from bench.paper.streams import sine_band, three_gaussians
from core import DetectorConfig
from core.arrays import BoolArray, FloatArray
from core.threshold.labelled_scores import CAPACITY
from core.threshold.ordinary_scores import CAPACITY as ORDINARY
from tests.core.samples import seasonal
from tests.oracle.decide_in_step import decide_in_step, in_stretches
from tests.oracle.in_step import InStep, labels_at_once, labels_late
from tests.oracle.naive import NaiveDetector
from tests.oracle.naive_evidence import NaiveEvidence
from tests.oracle.resemble_in_step import resemble_in_step

SEED = 20

Stream = tuple[FloatArray, BoolArray]


def clusters(seed: int, n: int, m: int) -> Stream:
    """Four normal clusters, of which correlated features; anomalies wide around them."""
    rng = np.random.default_rng(seed)
    centers, mixing = rng.normal(scale=3.0, size=(4, m)), rng.normal(size=(4, m, m))
    part, anomalous = rng.integers(4, size=n), rng.random(n) < 0.15
    normal = centers[part] + 0.5 * np.einsum("nij,nj->ni", mixing[part], rng.normal(size=(n, m)))
    return np.where(anomalous[:, None], rng.normal(scale=6.0, size=(n, m)), normal), anomalous


def with_holes(stream: Stream, seed: int, share: float = 0.25) -> Stream:
    """Features go missing at random, never all of a sample."""
    X, anomalous = stream[0].copy(), stream[1]
    rng = np.random.default_rng(seed)
    holes = rng.random(X.shape) < share
    holes[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    X[holes] = np.nan
    return X, anomalous


def with_repeats(stream: Stream) -> Stream:
    """From the middle on every second sample is one of the first half again."""
    n = len(stream[0])
    kept = [k - n // 2 if k >= n // 2 and k % 2 else k for k in range(n)]
    return stream[0][kept], stream[1][kept]


def in_units(stream: Stream, *units: float) -> Stream:
    """The features in other units, and away from the origin."""
    return stream[0] * np.array(units) + 5 * np.array(units), stream[1]


def with_outliers(stream: Stream, seed: int, share: float = 0.04) -> Stream:
    """Some samples lie 1e3 to 1e15 away, and are anomalous."""
    X, anomalous = stream[0].copy(), stream[1].copy()
    rng = np.random.default_rng(seed)
    far = rng.random(len(X)) < share
    X[far] = rng.normal(size=(far.sum(), X.shape[1])) * 10.0 ** rng.uniform(3, 15, size=(far.sum(), 1))
    return X, anomalous | far


def first(stream: Stream, n: int) -> Stream:
    return stream[0][:n], stream[1][:n]


G = {"threshold_range": (1e-4, 0.5)}
"""A range that holds most densities of the streams."""
LIVELY = {"expected_anomaly_rate": 0.2, "cost_false_negative": 3.0}
"""With these the threshold moves from the first label on."""
OPEN = {"profile": "paper", "learn_from": "all"}

STREAMS: dict[str, Stream] = {
    "exp. 1": first(three_gaussians(SEED), 70),
    "exp. 2": first(sine_band(SEED), 70),
    "1 feature": clusters(SEED, 70, 1),
    "5 features": clusters(SEED, 60, 5),
    "holes": with_holes(clusters(SEED, 60, 3), SEED),
    "repeats": with_repeats(first(three_gaussians(SEED + 1), 70)),
    "units": in_units(first(three_gaussians(SEED + 2), 70), 1e-3, 1e3),
}


def config_for(stream: Stream, **settings: Any) -> DetectorConfig:
    return DetectorConfig(n_features=stream[0].shape[1], **settings)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("profile", ["default", "paper"])
def test_both_profiles_on_every_stream(profile, name):
    X, anomalous = STREAMS[name]
    print(f"seed {SEED}")
    settings = {"warmup": 16, **LIVELY} if profile == "default" else G
    config = config_for(STREAMS[name], profile=profile, **settings)
    labels = labels_at_once(anomalous) if profile == "paper" else labels_late(anomalous, SEED)
    run = InStep(config, NaiveDetector(config))
    run.run(X, labels)
    assert run.core.describe()["n_learned"] > 40
    assert (run.core.score(X) != -run.core.log_density(X)).any() == (profile == "default")
    assert len({row.threshold for row in run.oracle.rows}) > 5


FEW = {"max_nodes": 7}
"""Where the threshold or the scaling matters, a small tree will do."""

OPTIONS: dict[str, dict[str, Any]] = {
    "learn_from decided_normal": {"learn_from": "decided_normal", **LIVELY},
    "learn_from labelled_normal": {"learn_from": "labelled_normal", "scaling": "none"},
    "diagonal": {"family": "gaussian_diagonal"},
    "eg": {"mixture": "eg", **LIVELY},
    "hindsight": {"threshold": "hindsight", **FEW, **LIVELY},
    "ogd": {"threshold": "ogd", **FEW, "cost_false_negative": 2.0, "cost_false_positive": 0.5, **G},
    "drift_relative": {"drift_relative": True, **FEW, **LIVELY},
    "drift_relative, ogd": {"drift_relative": True, "threshold": "ogd", **FEW, **G},
    "fixed": {"threshold": "fixed", "threshold_value": 4.0, **FEW},
    "incidents, accepted soon": {**FEW, **LIVELY, "incident_accept_samples": 3, "incident_close_samples": 2},
    "costs": {"cost_false_negative": 5.0, "expected_anomaly_rate": 0.2, "labels_trusted": True, **FEW},
    "long rounds": {"round_growth": 0.2, "max_round": 16, **LIVELY},
    "given scaling": {"scaling": {"location": [0.5, 0.5], "scale": [2.0, 0.5]}, **FEW},
    "even number of nodes": {"max_nodes": 6, **LIVELY},
    "soft-Bayes": {"mixture": "soft_bayes", "xi": 0.5},
    "scheduled": {"split": "scheduled", "beta": 1.5},
    "both, eg": {"split": "both", "beta": 1.3, "mixture": "eg"},
    "half-life": {"half_life_samples": 20.0, "split": "both", **LIVELY},
    "paper, half-life": {**OPEN, "half_life_samples": 20.0},
    "long rounds, eg": {"round_growth": 0.2, "mixture": "eg"},
    "paper, diagonal": {**OPEN, "family": "gaussian_diagonal", **G},
    "paper, soft-Bayes": {**OPEN, "mixture": "soft_bayes", "threshold": "weighted"},
    "paper, decided_normal": {**OPEN, "learn_from": "decided_normal", "threshold": "fixed", "threshold_value": 3.0},
    "paper, auto scaling": {**OPEN, "scaling": "auto", "beta": 1.5, "xi": 0.5, "round_growth": 0.1},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_with_late_labels(option):
    stream = first(three_gaussians(SEED + 3), 60)
    print(f"seed {SEED + 3}")
    settings = OPTIONS[option]
    scaled = "profile" not in settings and "scaling" not in settings
    config = config_for(stream, **settings, **({"warmup": 12} if scaled else {}))
    InStep(config, NaiveDetector(config)).run(stream[0], labels_late(stream[1], SEED))


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
@pytest.mark.parametrize("profile", ["default", "paper"])
def test_samples_with_holes_that_are_retracted(profile, family):
    stream = with_holes(first(three_gaussians(SEED + 4), 60), SEED, share=0.3)
    config = config_for(stream, profile=profile, family=family, learn_from="all", **LIVELY)
    InStep(config, NaiveDetector(config)).run(stream[0], labels_late(stream[1], SEED, share=0.9))


BATCHED: dict[str, tuple[int, dict[str, Any]]] = {
    "default": (225, {"max_nodes": 15, **LIVELY}),
    "growing rounds": (100, {"round_growth": 0.1, **LIVELY}),
    "paper": (120, {**OPEN, "round_growth": 0.1}),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batches_of_any_cut(name):
    seed, (length, settings) = SEED + 5, BATCHED[name]
    print(f"seed {seed}")
    X, anomalous = first(three_gaussians(seed), length)
    rng = np.random.default_rng(seed)
    cuts = sorted({0, *rng.integers(1, len(X), size=12).tolist(), len(X)})
    labels: dict[int, Any] = {}
    for at, pairs in labels_late(anomalous, seed).items():  # labels come between two batches
        cut = next((c for c in cuts if c >= at), len(X))
        labels.setdefault(cut, []).extend(pairs)
    config = config_for((X, anomalous), **settings)
    InStep(config, NaiveDetector(config)).run(X, labels, cuts)


@pytest.mark.parametrize(("m", "n"), [(1, 160), (2, 240), (3, 140), (5, 140)])
@pytest.mark.parametrize("round_growth", [0.0, 0.08])
def test_the_default_engine_at_every_prefix(round_growth, m, n):
    """In rounds of one, and in longer ones; the tree is cut at least once."""
    print(f"seed {SEED}")
    config = DetectorConfig(n_features=m, round_growth=round_growth)
    run = InStep(config, NaiveDetector(config))
    run.run(clusters(SEED + 7, n, m)[0], {})
    assert len(run.oracle.density.nodes) > 1


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
@pytest.mark.parametrize("forgetting", [{}, {"half_life_samples": 60.0}], ids=["all", "half-life"])
def test_gross_outliers_that_are_labelled_restored_and_withdrawn(family, forgetting):
    """The statistics are those of a run that never saw what is retracted, tree and weights held."""
    stream = with_outliers(first(three_gaussians(SEED + 8), 190), SEED)
    config = config_for(stream, family=family, **forgetting, **LIVELY)
    run = InStep(config, NaiveDetector(config))
    run.run(stream[0], labels_late(stream[1], SEED, share=0.8))
    assert len(run.oracle.density.nodes) > 1
    assert any(s.void for s in run.oracle.density.samples)


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_a_half_life_in_seconds_of_clocks_that_stand_still_and_go_back(profile):
    X, anomalous = first(three_gaussians(SEED + 9), 120)
    rng = np.random.default_rng(SEED)
    times = 1.7e9 + np.cumsum(rng.choice([-20.0, 0.0, 1.0, 5.0, 90.0], size=len(X)))
    config = config_for((X, anomalous), profile=profile, learn_from="all", half_life_seconds=300.0)
    InStep(config, NaiveDetector(config)).run(X, labels_late(anomalous, SEED), times=times)


@pytest.mark.parametrize("mixture", ["tree", "soft_bayes"])
def test_a_full_tree_that_exchanges_pairs(mixture, monkeypatch):
    """Without labels: a node that took its parent's place cannot give back what it learned elsewhere."""
    given_up = []
    for do in (NaiveEvidence.collapse, NaiveEvidence.lift):

        def counted(self, *args, do=do):
            given_up.append(do.__name__)
            do(self, *args)

        monkeypatch.setattr(NaiveEvidence, do.__name__, counted)
    monkeypatch.setattr("core.growth.evidence.worth.MEMORY", 40.0)
    monkeypatch.setattr("tests.oracle.naive_evidence.WORTH_MEMORY", 40.0)
    rng = np.random.default_rng(5)
    centers = [[0, 0], [4, 0], [0, 4], [4, 4], [-4, 0], [0, -4]]
    X = np.concatenate([0.3 * rng.normal(size=(60, 2)) + center for center in centers])
    config = DetectorConfig(n_features=2, max_nodes=7, mixture=mixture, round_growth=0.03)
    InStep(config, NaiveDetector(config)).run(X, {})
    assert len(given_up) > 1
    assert "collapse" in given_up


@pytest.mark.parametrize("name", ["default", "paper", "half-life in seconds", "wakes"])
def test_samples_that_are_held_out(name):
    """A third of them, in batches of any cut, with late labels for the others."""
    print(f"seed {SEED}")
    settings = {"default": LIVELY, "paper": OPEN, "half-life in seconds": {"half_life_seconds": 60.0}, "wakes": {}}
    X, anomalous = late_movers(SEED, 140)[name] if name == "wakes" else first(three_gaussians(SEED + 10), 140)
    rng = np.random.default_rng(SEED)
    held_out = rng.random(len(X)) < 0.3
    cuts = sorted({0, *rng.integers(1, len(X), size=40).tolist(), len(X)})
    n_counted = np.cumsum(~held_out)
    labels: dict[int, Any] = {}
    for at, pairs in labels_late(anomalous[~held_out], SEED, share=0.4).items():
        when = int(np.searchsorted(n_counted, at)) + 1  # as soon as so many others have come
        labels.setdefault(next((c for c in cuts if c >= when), len(X)), []).extend(pairs)
    config = config_for((X, anomalous), round_growth=0.05, max_nodes=7, **settings[name])
    InStep(config, NaiveDetector(config)).run(X, labels, cuts, 1.7e9 + np.arange(float(len(X))), held_out)


def late_movers(seed: int, n: int) -> dict[str, Stream]:
    """Two clusters beside a feature that moves late, rarely, or not as in the warm-up of 16 samples."""
    rng = np.random.default_rng(seed)
    (X, anomalous), row = clusters(seed, n, 2), np.arange(n)
    moving, far, rare = rng.normal(3.0, 1e-5, n), rng.normal(5e3, 1e3, n), rng.random(n)
    third = {
        "wakes": np.where(row < 60, 3.0, moving),
        "is silent": np.where((row < 40) | (rare < 0.1), np.nan, moving),
        "is mostly zero": np.where(rare < 0.15, np.exp(moving), 0.0),
        "moves too rarely to tell": np.where((rare < 0.05) & (row > 20), far, 0.0),
        "starts roughly": np.where(row < 16, far, 100 + 0.1 * X[:, 0]),
        "grows calm and wild again": np.where((row < 20) | (row > 300), far, X[:, 1]),
    }
    return {name: (np.column_stack([X, column]), anomalous) for name, column in third.items()}


SCALES: dict[str, dict[str, Any]] = {
    "weighted": {"threshold": "weighted"},
    "relative, diagonal": {"drift_relative": True, "family": "gaussian_diagonal"},
    "ogd": {"threshold": "ogd", **G},
    "fixed": {"threshold": "fixed", "threshold_value": 4.0},
}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, "weighted") for name in late_movers(SEED, 16)),
        *((name, rule) for name in ("wakes", "is mostly zero") for rule in SCALES if rule != "weighted"),
    ],
)
def test_scales_that_follow(name, settings, monkeypatch):
    """In batches of any cut, with labels that come late, also for samples from before a scale was told."""
    print(f"seed {SEED}")
    X, anomalous = late_movers(SEED, 520 if name.startswith("grows") else 180)[name]
    rng = np.random.default_rng(SEED)
    cuts = sorted({0, *rng.integers(1, len(X), size=30).tolist(), len(X)})
    labels: dict[int, Any] = {}
    for at, pairs in labels_late(anomalous, SEED, share=0.2).items():
        labels.setdefault(next((c for c in cuts if c >= at), len(X)), []).extend(pairs)
    config = config_for((X, anomalous), warmup=16, max_nodes=7, round_growth=0.05, **SCALES[settings])
    followed, follow = [], NaiveEvidence.follow
    monkeypatch.setattr(NaiveEvidence, "follow", lambda self: (followed.append(self.n_learned), follow(self)))
    InStep(config, NaiveDetector(config)).run(X, labels, cuts)
    assert bool(followed) == (name != "moves too rarely to tell")


@pytest.mark.parametrize("learn_from", ["all", "decided_normal", "labelled_normal"])
def test_labels_given_during_the_warm_up(learn_from):
    stream = first(three_gaussians(SEED + 6), 50)
    config = config_for(stream, learn_from=learn_from, **LIVELY)
    InStep(config, NaiveDetector(config)).run(stream[0], labels_at_once(stream[1]))


@pytest.mark.parametrize(
    ("rule", "costs", "drift_relative"),
    [
        ("weighted", (4.0, 0.5), False),
        ("weighted", (4.0, 0.5), True),
        ("hindsight", (1.0, 1.0), False),
        ("hindsight", (1.0, 1.0), True),
        ("ogd", (2.0, 0.5), True),
        ("fixed", (1.0, 1.0), True),
    ],
)
def test_decisions_over_more_scores_and_labels_than_they_keep(rule, costs, drift_relative):
    print(f"seed {SEED}")
    settings = {"cost_false_negative": costs[0], "cost_false_positive": costs[1], "drift_relative": drift_relative}
    if rule == "fixed":
        settings["threshold_value"] = 2.0
    config = DetectorConfig(n_features=2, threshold=rule, incident_close_seconds=30.0, **settings)
    rng = np.random.default_rng(SEED)
    anomalous = rng.random(ORDINARY + 300) < 0.2
    assert len(anomalous) // 2 > CAPACITY
    decide_in_step(config, anomalous, rng, labelled=0.5)


def test_resemblance_over_more_samples_and_labels_than_it_keeps():
    print(f"seed {SEED}")
    added = resemble_in_step(SEED)
    assert added[:3] == [0.0, 0.0, 0.0]
    assert min(added) < -0.5
    assert max(added) > 0.5


@pytest.mark.parametrize("settings", [{}, {"incident_accept_samples": 5}, {"incident_close_samples": 1}])
@pytest.mark.parametrize("labelled", [0.0, 0.03])
def test_incidents_outages_and_lasting_changes(settings, labelled):
    print(f"seed {SEED}")
    config = DetectorConfig(n_features=2, **settings)
    events = decide_in_step(config, in_stretches(), np.random.default_rng(SEED), labelled=labelled, far=25.0)
    assert 1 in events
    assert {2, 3} & set(events)
    assert settings or labelled or {2, 3} <= set(events)


OF_TWO = [{"name": "a"}, {"name": "b", "role": "context"}]
OF_THREE = [*OF_TWO, {"name": "c"}]
CONTEXTS: dict[str, tuple[int, dict[str, Any]]] = {
    "one value, one context": (190, {"features": OF_TWO}),
    "two values": (110, {"features": OF_THREE}),
    "diagonal": (110, {"features": OF_THREE, "family": "gaussian_diagonal"}),
    "calendar": (190, {"n_features": 2, "calendar": {"periods": ["day"], "timezone": "Europe/Berlin"}}),
    "both": (90, {"features": OF_TWO, "calendar": {"periods": [3000.0]}, "split": "both", "beta": 1.3}),
    "half-life, labelled normals": (
        90,
        {"features": OF_THREE, "half_life_samples": 40.0, "learn_from": "labelled_normal"},
    ),
    "week, soft-Bayes": (80, {"n_features": 2, "calendar": {"periods": ["week"]}, "mixture": "soft_bayes"}),
    "diagonal calendar": (
        90,
        {"n_features": 2, "calendar": {"periods": ["day", 5000.0]}, "family": "gaussian_diagonal"},
    ),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_context_and_calendars(name):
    """The conditional score, growth by conditional evidence, and calendars; with late labels."""
    print(f"seed {SEED}")
    n, settings = CONTEXTS[name]
    config = DetectorConfig(**settings, warmup=16, round_growth=0.05, **LIVELY)
    X, anomalous, times = seasonal(SEED, n, config.n_features)
    labels = labels_late(anomalous, SEED, share=0.3) if config.learn_from == "all" else labels_at_once(anomalous)
    run = InStep(config, NaiveDetector(config))
    run.run(X, labels, times=times if config.calendar else None)
    if name in ("one value, one context", "two values", "diagonal", "both"):
        assert len(run.oracle.density.nodes) > 1
