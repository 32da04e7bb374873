"""Runs what labels add to scores in core and in the oracle, side by side, over more than either remembers."""

import numpy as np

from core import DetectorConfig
from core.feedback.resemblance import Resemblance
from tests.oracle.in_step import close
from tests.oracle.naive_resemblance import NaiveResemblance

PROBES = (5, 19, 20, 21, 37, 61, 100, 700, 1101, 2300, 2399)
"""After about so many samples both are compared; the oracle takes its time."""


def resemble_in_step(seed: int, naive_type: type[NaiveResemblance] = NaiveResemblance) -> list[float]:
    """Samples and labels, some wrong, in batches of any size; what is added. AssertionError where they differ."""
    rng, config = np.random.default_rng(seed), DetectorConfig(n_features=2)
    fast, naive, added = Resemblance(config), naive_type(config), list[float]()
    anomalous = rng.random(2400) < 0.3
    X = rng.normal(size=(2400, 2)) * [1.0, 3.0] + np.where(anomalous[:, None], [2.0, 6.0], 0.0)
    scores = rng.normal(size=2400) ** 2 + 2.0 * anomalous
    scores[1500::7] += 30.0
    ordinary, done = rng.random(2400) < 0.9, 0
    while done < len(X):
        if done in PROBES:
            expected = naive.added(X[done])
            close("added", done, fast.added(X[done : done + 1])[0], expected)
            added.append(expected)
        end = min(done + int(rng.integers(1, 90)), next(p for p in (*PROBES, len(X)) if p > done))
        rows = done + np.flatnonzero(ordinary[done:end])
        fast.note(X[rows], scores[rows])
        naive.samples += [(X[i], scores[i]) for i in rows]
        for i in rng.integers(max(0, end - 200), end, 3 + (end - done) // 3).tolist():
            label = int(rng.choice([0, 1, -1], p=[0.05, *((0.9, 0.05) if anomalous[i] else (0.05, 0.9))]))
            fast.label(i + 1, label, X[i])
            naive.label(i + 1, label, X[i])
        done = end
    assert max(len(naive.known(1)), len(naive.known(-1))) == 256
    return added
