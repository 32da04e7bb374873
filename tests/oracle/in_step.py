"""Runs core and the oracle side by side, and compares all that can be seen of them at every prefix of a stream."""

from dataclasses import dataclass, field
from itertools import pairwise
from unittest import mock

import numpy as np

from core import Detector, DetectorConfig, Records
from core.arrays import BoolArray, FloatArray
from core.growth.evidence import proposals
from tests.oracle.naive import NaiveDetector
from tests.oracle.naive_evidence import Searches

TOLERANCE = 1e-9

Labels = dict[int, list[tuple[int, bool | None]]]
"""Before which sample (from 0) which labels (seq, label) arrive."""


@dataclass
class InStep:
    """One stream, fed to both; raises AssertionError at the first prefix where they differ.

    The oracle does not number samples that are held out: seqs and labels are those of its numbering.
    """

    config: DetectorConfig
    oracle: NaiveDetector
    core: Detector = field(init=False)

    def __post_init__(self) -> None:
        self.core = Detector(self.config)
        self.records: dict[int, Records] = {}
        self.of_core = {0: 0}
        self.oracle.density.searches = self.searches = Searches(proposals.best_hyperplane)

    def run(
        self,
        X: FloatArray,
        labels: Labels,
        cuts: list[int] | None = None,
        times: FloatArray | None = None,
        held_out: BoolArray | None = None,
    ) -> None:
        """The core gets the samples between cuts as one batch, one by one without cuts."""
        with mock.patch.object(proposals, "best_hyperplane", self.searches.by_core):
            cuts = list(range(len(X) + 1)) if cuts is None else cuts
            self._run(X, labels, cuts, times, np.zeros(len(X), bool) if held_out is None else held_out)

    def _run(
        self, X: FloatArray, labels: Labels, cuts: list[int], times: FloatArray | None, held_out: BoolArray
    ) -> None:
        for start, stop in pairwise(cuts):
            self.feed_back([pair for k in range(start, stop) for pair in labels.get(k, [])])
            self.observe(X[start:stop], None if times is None else times[start:stop], held_out[start:stop])
        self.feed_back([pair for k, pairs in labels.items() if k >= len(X) for pair in pairs])
        self.compare_costs()

    def observe(self, X: FloatArray, times: FloatArray | None, held_out: BoolArray) -> None:
        out = self.core.observe(X, times, held_out=held_out)
        clock = [np.nan] * len(X) if times is None else times.tolist()
        rows = [
            (self.oracle.hold_out if is_held_out else self.oracle.observe)(x, time)
            for x, time, is_held_out in zip(X, clock, held_out.tolist(), strict=True)
        ]
        assert not self.searches.made, "core made a search that the oracle did not"
        for i, row in enumerate(rows):
            assert bool(out.ready[i]) == row.ready
            if held_out[i]:
                assert out.records.held_out[i]
            else:
                self.records[row.seq], self.of_core[int(out.seq[i])] = out.records[i], row.seq
                assert bool(out.records.ordinary[i]) == row.ordinary, f"ordinary {row.seq}"
            close("score", row.seq, out.score[i], row.score)
            close("threshold", row.seq, out.threshold[i], row.threshold)
            close("severity", row.seq, out.severity[i], row.severity)
            assert bool(out.is_anomaly[i]) == row.is_anomaly, f"decision {row.seq}"
            found = self.of_core[int(out.incident[i])], int(out.event[i])
            assert found == (row.incident, row.event), f"incident {row.seq}"
        self.compare_models(len(self.oracle.rows))

    def feed_back(self, pairs: list[tuple[int, bool | None]]) -> None:
        for group in without_repeats(pairs):
            seqs = [seq for seq, _ in group]
            said = self.core.feedback(Records.concatenate([self.records[s] for s in seqs]), [v for _, v in group])
            assert said.outcome == self.oracle.feedback(group)
            assert [self.of_core[seq] for seq in said.accepted] == self.oracle.accepted
            for i, seq in enumerate(seqs):
                self.records[seq] = said.records[i]
        if pairs:
            self.compare_models(len(self.oracle.rows))

    def compare_models(self, prefix: int) -> None:
        """Threshold, tree, weights, counts, moments and hyperplanes."""
        if not self.oracle.ready:
            assert not self.core.ready
            return
        close("next threshold", prefix, self.core.threshold, self.oracle.rule.value)
        shown, expected = self.core.describe(), described(self.oracle)
        assert shown["n_learned"] == self.oracle.density.n_learned, f"n_learned at {prefix}"
        assert len(shown["nodes"]) == len(expected["count"]), f"tree size at {prefix}"
        for name in ("level", "count", "weight", "mean", "covariance"):
            close(name, prefix, [node[name] for node in shown["nodes"]], expected[name])
        assert [node["parent"] for node in shown["nodes"]] == expected["parent"], f"parents at {prefix}"
        for name in ("normal", "offset"):
            close(name, prefix, [plane[name] for plane in shown["hyperplanes"]], expected[name])

    def compare_costs(self) -> None:
        shown = self.core.costs()
        *counts, cost, best_cost, best = self.oracle.costs()
        assert [shown.true_alarms, shown.false_alarms, shown.misses, shown.true_passes] == counts
        close("cost", len(self.oracle.rows), [shown.cost, shown.best_fixed_cost], [cost, best_cost])
        assert (shown.best_fixed_threshold is None) == (best is None)
        if best is not None:
            close("best fixed threshold", len(self.oracle.rows), shown.best_fixed_threshold, best)


def close(name: str, prefix: int, shown: object, expected: object) -> None:
    """Within 1e-9 * max(1, |v|); NaN equals NaN."""
    a, b = np.asarray(shown, float), np.asarray(expected, float)
    assert a.shape == b.shape, f"{name} at {prefix}: {a.shape} against {b.shape}"
    differs = ~((np.abs(a - b) <= TOLERANCE * np.maximum(1.0, np.abs(b))) | (np.isnan(a) & np.isnan(b)))
    assert not differs.any(), f"{name} at {prefix}: {a[differs][:4]} against {b[differs][:4]}"


def described(oracle: NaiveDetector) -> dict[str, list]:
    """The oracle's model, as Detector.describe shows it: in the user's units."""
    scale, location, nodes, m = oracle.scale, oracle.location, oracle.density.nodes, oracle.m
    firsts = nodes[1::2]
    normals = [child.path[-1][0][:m] / scale for child in firsts]
    return {
        "parent": [None if node.parent is None else nodes.index(node.parent) for node in nodes],
        "level": [node.level for node in nodes],
        "count": [oracle.density.total(node.counted) for node in nodes],
        "weight": oracle.density.weights_that_score(),
        "mean": [node.mean[:m] * scale + location for node in nodes],
        "covariance": [node.covariance[:m, :m] * np.outer(scale, scale) for node in nodes],
        "normal": normals,
        "offset": [c.path[-1][1] + n @ location for c, n in zip(firsts, normals, strict=True)],
    }


def without_repeats(pairs: list[tuple[int, bool | None]]) -> list[list[tuple[int, bool | None]]]:
    """Runs of labels in which no sample occurs twice: one call of feedback refuses two labels for one sample."""
    groups: list[list[tuple[int, bool | None]]] = []
    for seq, label in pairs:
        if not groups or seq in [s for s, _ in groups[-1]]:
            groups.append([])
        groups[-1].append((seq, label))
    return groups


def labels_at_once(anomalous: BoolArray) -> Labels:
    """Every sample's label before the next sample."""
    return {i + 1: [(i + 1, bool(a))] for i, a in enumerate(anomalous)}


def labels_late(anomalous: BoolArray, seed: int, share: float = 0.6, longest: int = 60) -> Labels:
    """A share of the labels at random delays; of these some are wrong at first and revised, some are withdrawn."""
    rng, labels = np.random.default_rng(seed), {}
    for i, truth in enumerate(anomalous.tolist()):
        if rng.random() > share:
            continue
        at = i + 1 + int(rng.integers(longest))
        story = [[truth], [truth], [not truth, truth], [truth, None], [not truth, None, truth], [truth, truth]]
        for label in story[rng.integers(len(story))]:
            labels.setdefault(at, []).append((i + 1, label))
            at += int(rng.integers(longest // 2))
    return labels
