"""Streams and detectors that several files feed and compare."""

from typing import Any

import numpy as np

from core import Detector, DetectorConfig

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, paper's mixture": {"mixture": "eg"},
    "default, diagonal": {"family": "gaussian_diagonal"},
    "default, decided normal": {"learn_from": "decided_normal", "threshold": "hindsight"},
    "default, labelled normal": {"learn_from": "labelled_normal"},
    "default, unscaled": {"scaling": "none", "threshold": "fixed", "threshold_value": 6.0},
    "default, soft Bayes, scheduled": {"mixture": "soft_bayes", "split": "scheduled", "beta": 1.4},
    "default, EG, both": {"mixture": "eg", "split": "both"},
    "default, odds, both": {"split": "both", "beta": 1.3},
    "default, diagonal, half-life": {"family": "gaussian_diagonal", "half_life_samples": 30.0, "split": "both"},
    "default, half-life in seconds": {"half_life_seconds": 40.0},
    "default, drift": {"drift_relative": True, "half_life_samples": 50.0, "round_growth": 0.3},
    "default, at the cap": {"max_nodes": 7, "split": "both", "round_growth": 0.1},
    "default, long rounds": {"round_growth": 1.0, "max_round": 40},
    "paper": {"profile": "paper"},
    "paper, half-life": {"profile": "paper", "learn_from": "all", "half_life_samples": 30.0},
    "paper, all": {"profile": "paper", "learn_from": "all"},
    "paper, diagonal, soft Bayes": {
        "profile": "paper",
        "learn_from": "decided_normal",
        "family": "gaussian_diagonal",
        "mixture": "soft_bayes",
    },
}

NAMES = ({"name": "a"}, {"name": "b", "role": "context"}, {"name": "c"})
CONTEXTS: dict[str, dict[str, Any]] = {
    "context": {"features": NAMES},
    "calendar": {"calendar": {"periods": ["day", 40.0], "timezone": "Europe/Berlin"}},
    "context and calendar, diagonal": {
        "features": NAMES,
        "calendar": {"periods": [30.0]},
        "family": "gaussian_diagonal",
    },
    "calendar, half-life": {"calendar": {"periods": [25.0]}, "half_life_seconds": 40.0, "learn_from": "decided_normal"},
}
"""Three features, some of them context, and calendars."""


def detector(n_features: int = 3, **fields: Any) -> Detector:
    return Detector(DetectorConfig(n_features=n_features, **fields))


def clusters(n: int, m: int = 3, *, seed: int = 0, missing: float = 0.0) -> np.ndarray:
    """Three clusters in m features, some of them missing, and one gross outlier in fifty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * 0.4 + rng.integers(-1, 2, size=(n, 1)) * 2.0
    X[60::50] *= 20
    X[rng.random((n, m)) < missing] = np.nan
    X[np.isnan(X).all(1)] = 0.25
    return X


def seasonal(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features that follow the hour and each other, in two habits; some values and times are missing."""
    rng, times = (
        np.random.default_rng(seed),
        1_742_166_000.0 + np.cumsum(np.random.default_rng(seed).exponential(3000, n)),
    )
    hour, habit = 2 * np.pi * times / 86_400, rng.random(n) < 0.4
    X = np.outer(np.sin(hour), np.ones(m)) + 0.3 * rng.normal(size=(n, m))
    X += rng.normal(size=(n, 1)) * np.where(habit[:, None], -1.0, 1.0) ** np.arange(m) + 4.0 * habit[:, None]
    anomalous = rng.random(n) < 0.1
    X[anomalous] = rng.normal(scale=5.0, size=(int(anomalous.sum()), m))
    X[:, 1:][rng.random((n, m - 1)) < 0.15] = np.nan
    return X, anomalous, np.where(rng.random(n) < 0.1, np.nan, times)


def feed(detector: Detector, X: np.ndarray, cuts: list[int], labels: dict[int, dict[int, bool | None]]) -> np.ndarray:
    """Observe X, a sample a second, cut at these places, and give labels {after so many samples: {index: label}}; what
    was answered."""
    ends = sorted({*cuts, *labels, len(X)} - {0})
    answers, records, start = [], [], 0
    for end in ends:
        out = detector.observe(X[start:end], 1e9 + np.arange(start, end, dtype=float))
        answers.append(np.stack([out.score, out.threshold, out.is_anomaly, out.ready, out.seq], axis=1))
        records += [out.records[i] for i in range(end - start)]
        for index, label in labels.get(end, {}).items():
            records[index] = detector.feedback(records[index], [label]).records
        start = end
    return np.concatenate(answers)
