"""A fleet that starts cold, and warm from one stream of it: CPU and accuracy of the first samples of each stream.

python -m bench.warm_start [streams]
"""

import sys
from collections.abc import Iterator
from time import process_time

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from core import Detector, DetectorConfig

SAMPLES, EARLY, SOURCE_SAMPLES, M = 2_000, 200, 20_000, 4
RATE = 0.02
WORTH = 500
"""Samples that the model of the source counts as."""

Samples = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]


def samples_of(kind: str, seed: int, n: int) -> Samples:
    """Make a stream of a fleet: all have two modes of work; `shifted` ones differ in level and size, `other` in all."""
    rng = np.random.default_rng(seed)
    modes = np.random.default_rng(0 if kind != "other" else 10_000 + seed).normal(scale=4.0, size=(2, M))
    level, size = np.zeros(M), np.ones(M)
    if kind == "shifted":
        level, size = rng.normal(scale=0.5, size=M), rng.uniform(0.8, 1.25, M)
    X = (modes[rng.integers(2, size=n)] + rng.normal(size=(n, M))) * size + level
    anomalous = rng.random(n) < RATE
    X[anomalous] += rng.choice([-4.0, 4.0], (int(anomalous.sum()), M))
    return X, anomalous


def auc(score: npt.NDArray[np.float64], anomalous: npt.NDArray[np.bool_]) -> float:
    """Give the chance that an anomaly scores higher than a normal sample, ties half; NaN without an anomaly."""
    n = int(np.count_nonzero(anomalous))
    if n == 0:
        return np.nan
    return float((rankdata(score)[anomalous].sum() - n * (n + 1) / 2) / (n * (len(score) - n)))


def streams_of(kind: str, streams: int) -> Iterator[Samples]:
    """Make the streams of a fleet, but for the source."""
    return (samples_of(kind, seed, SAMPLES) for seed in range(1, streams + 1))


def measure(kind: str, streams: int) -> list[str]:
    """Give a row for a fleet that starts cold, and one for the same that starts warm."""
    config = DetectorConfig(n_features=M)
    source = Detector(config)
    source.observe(samples_of(kind, 0, SOURCE_SAMPLES)[0])
    rows = []
    for start in ("cold", "warm"):
        seconds, early, late, costs = 0.0, [], [], []
        for X, anomalous in streams_of(kind, streams):
            began = process_time()
            detector = Detector(config) if start == "cold" else Detector.warm_started(config, source, WORTH)
            first = detector.observe(X[:EARLY])
            rest = detector.observe(X[EARLY:])
            seconds += process_time() - began
            score = np.where(first.ready, first.score, -np.inf)
            early.append(auc(score, anomalous[:EARLY]))
            late.append(auc(rest.score, anomalous[EARLY:]))
            costs.append(float(np.mean(first.is_anomaly != anomalous[:EARLY])))
        numbers = (np.nanmean(early), np.mean(costs), np.nanmean(late))
        rows.append(f"| {kind} | {start} | {seconds / streams:.3f} | " + " | ".join(f"{n:.4f}" for n in numbers) + " |")
    return rows


def main(streams: int) -> None:
    """Print a table."""
    print(f"| fleet | start | CPU s a stream | AUC, first {EARLY} | errors, first {EARLY} | AUC, after |")
    print("|---|---|---|---|---|---|")
    for kind in ("alike", "shifted", "other"):
        print("\n".join(measure(kind, streams)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
