"""Long random lives of a detector: everything that can be configured, observed and said of a sample, from one seed."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from core import Detector, DetectorConfig
from core.kinds import KINDS

EDGES = [0.0, 5e-324, -5e-324, 1e-160, -1e-160, 1e100, -1e100, 1e154, -1e200, 1e308, -1.7e308]
HALF_LIVES = (1.0, 3.0, 10.0, 40.0, 300.0)
PAUSES = (0.0, 0.0, 0.0, 0.0, 1.0, 30.0, 1100.0, 1e5)
"""In half-lives; after about 1,075 of them a weight is no longer a number above zero."""


def config_of(rng: np.random.Generator) -> DetectorConfig:
    """Any config, with rounds and trees that come to something within some hundred samples."""
    fields: dict[str, Any] = {"profile": pick(rng, "default", "default", "default", "paper")}
    paper = fields["profile"] == "paper"
    m = int(rng.integers(1, 5))
    kinds = list(KINDS) if rng.random() < 0.4 and not paper else ["gaussian"]
    fields["features"] = [{"name": f"f{i}", "kind": pick(rng, *kinds)} for i in range(m)]
    fields["learn_from"] = pick(rng, "all", "all", "decided_normal", "labelled_normal")
    fields["mixture"] = pick(rng, "eg", "soft_bayes", *([] if paper else ["tree", "tree"]))
    fields["family"] = pick(rng, "gaussian", "gaussian_diagonal")
    fields["threshold"] = pick(rng, "weighted", "hindsight", "ogd", "fixed")
    fields["drift_relative"] = bool(rng.random() < 0.3)
    fields["labels_trusted"] = bool(rng.random() < 0.3)
    fields["round_growth"] = pick(rng, 0.0, 0.01, 0.1, 0.4, 1.0)
    fields["max_round"] = int(pick(rng, 1, 16, 256))
    fields["max_nodes"] = int(pick(rng, 1, 5, 9, 31))
    fields["beta"] = pick(rng, 1.05, 1.3, 2.0)
    fields["xi"] = pick(rng, 0.01, 0.2, 0.99)
    fields["prior_count"] = pick(rng, 1e-3, 0.1, 1.0, 1e3)
    if fields["threshold"] == "fixed":
        fields["threshold_value"] = 4.0
    if not paper:
        fields["split"] = pick(rng, "evidence", "scheduled", "both")
    if (half_life := pick(rng, None, None, "samples", "seconds")) is not None:
        fields[f"half_life_{half_life}"] = pick(rng, *HALF_LIVES)
    if fields["threshold"] != "ogd" and rng.random() < 0.3:
        fields["scaling"] = "none"
    if not paper and rng.random() < 0.4:
        for feature in fields["features"][1:]:
            feature["role"] = pick(rng, "value", "context")
        if rng.random() < 0.5:
            periods = [2.5] if half_life == "seconds" else [2.5, "week", 3600.0][: int(rng.integers(1, 4))]
            fields["calendar"] = {"periods": periods, "timezone": pick(rng, "UTC", "Asia/Tokyo")}
            if half_life == "seconds":
                fields["half_life_seconds"] = max(fields["half_life_seconds"], 3.0)
    return DetectorConfig(**fields)


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[rng.integers(len(choices))]


class Life:
    """What happens to a detector, event by event; several detectors can live it at once.

    An event is a function of a detector and the records that it has given so far; it returns what was answered.
    """

    def __init__(self, seed: int, n_events: int, config: DetectorConfig | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.config = config_of(self.rng) if config is None else config
        self.n_events = n_events
        self.now, self.seen = 1e9, 0
        self.odd = pick(self.rng, 0.0, 0.02, 0.2)
        self.missing = pick(self.rng, 0.0, 0.1, 0.5)
        self.edges = pick(self.rng, 0.0, 0.0, 0.02)
        self.normals = pick(self.rng, 0.5, 0.95, 1.0)
        self.unit = pick(self.rng, 1.0, 1.0, 1.0, 1e-160, 1e-9, 1e13, 1e99)
        self.twins = self.rng.random() < 0.1
        self.held_out = pick(self.rng, 0.0, 0.0, 0.2)
        self.burst = (self.config.half_life_samples or 9.0) <= 3.0 and self.rng.random() < 0.2

    def events(self) -> Iterator[Any]:
        for _ in range(self.n_events):
            yield self._labels() if self.seen and self.rng.random() < 0.45 else self._samples()

    def _samples(self) -> Any:
        half_life = self.config.half_life_seconds or 60.0
        pause = pick(self.rng, *PAUSES)
        n = int(pick(self.rng, 1, 1, 1, 2, 7, 40))
        if self.burst and pause == 1100.0:
            n, self.burst = int(pause * self.config.half_life_samples), False
        times = self.now + pause * half_life + np.cumsum(self.rng.random(n))
        self.now = float(times[-1])
        if self.rng.random() < 0.1:  # late ones
            times = times[::-1] - half_life
        if self.config.calendar is not None and self.config.half_life_seconds is None:
            times = np.where(self.rng.random(n) < self.missing, np.nan, times)
        X = self.values(n)
        self.seen += n
        held_out = self.rng.random(n) < self.held_out

        def observe(detector: Detector, records: list[Any]) -> list[np.ndarray]:
            out = detector.observe(X, times, held_out=held_out)
            records.extend(out.records[i] for i in range(n))
            return [out.score, out.threshold, out.is_anomaly, out.ready]

        return observe

    def values(self, n: int) -> np.ndarray:
        """Two clusters and what lies far from both, as values that the features can have."""
        rng, m = self.rng, self.config.n_features
        Z = rng.normal(size=(n, m)) + np.where(rng.random((n, 1)) < 0.4, 9.0, 0.0)
        Z[rng.random(n) < self.odd] *= pick(rng, 5.0, 1e4, 1e15)
        Z = np.repeat(Z[:, :1], m, 1) if self.twins else Z
        X = np.stack([self._of_kind(kind, Z[:, i]) for i, kind in enumerate(self.config.kinds)], 1)
        edge = rng.random((n, m)) < self.edges
        for i, kind in enumerate(self.config.kinds):
            allowed = [v for v in EDGES if KINDS[kind].inside(np.array(v))]
            X[edge[:, i], i] = rng.choice(allowed, int(edge[:, i].sum()))
        known = X[:, 0].copy()
        X[rng.random((n, m)) < self.missing] = np.nan
        empty = np.isnan(X[:, [*self.config.values]]).all(1)
        X[empty, 0] = known[empty]
        return X

    def _of_kind(self, kind: str, z: np.ndarray) -> np.ndarray:
        match kind:
            case "gaussian":
                return z * self.unit
            case "lognormal" | "gamma":
                return np.exp(np.clip(z, -200.0, 200.0))
        return KINDS[kind].nearest(np.abs(z))

    def _labels(self) -> Any:
        """Mostly of recent samples, sometimes of very old ones; new, revised and withdrawn."""
        rng = self.rng
        oldest = pick(rng, 0, 0, max(0, self.seen - 60))
        n = int(pick(rng, 1, 1, 3, 30, 200))
        chosen = np.unique(rng.integers(oldest, self.seen, n)).tolist()
        rng.shuffle(chosen)
        said = [None if rng.random() < 0.1 else bool(rng.random() > self.normals) for _ in chosen]

        def feedback(detector: Detector, records: list[Any]) -> list[np.ndarray]:
            result = detector.feedback(type(records[0]).concatenate([records[i] for i in chosen]), said)
            for k, i in enumerate(chosen):
                records[i] = result.records[k]
            after = np.array([result.threshold_before, result.threshold_after])
            return [after, result.retracted]

        return feedback


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    """Whether two answers are equal to the last bit."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def is_finite(answer: list[np.ndarray], detector: Detector) -> bool:
    """Whether what was answered to labels, or to samples of a detector that is ready, has no NaN or infinity."""
    if len(answer) == 4:
        score, threshold, _, ready = answer
        return bool(np.isfinite(score[ready]).all() and np.isfinite(threshold[ready]).all())
    return not detector.ready or bool(np.isfinite(answer[0][1:]).all())
