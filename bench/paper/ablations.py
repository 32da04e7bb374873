"""The worth of each choice in docs/method.md: one change at a time, on the paper's three experiments.

uv run --group bench python -m bench.paper.ablations [deviations|settings|data|thresholds|labels ...]

Everything is seeded. Synthetic experiments: mean over data sets of 1000 rounds, 0 to 9 for the paper profile, 0 to 3
for the default; Vehicle: 846 rows, z-scored.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from app.replay.ranking import ranking_auc
from bench.detectors import ItanModel
from bench.paper.experiments import DATA_SETS, itan_config
from bench.paper.streams import SYNTHETIC, Stream, vehicle
from bench.protocol import log_loss, prequential
from bench.tables import Cell, Column, Table, versions
from core import Detector, DetectorConfig, Records
from core.arrays import BoolArray, FloatArray, IntArray
from core.decision.rule import DecisionRule
from core.density import model
from core.density.model import DensityModel
from core.density.round import Round
from core.families import Gaussian, marginal_likelihood, student_nodes
from core.families.gaussian_nodes import GaussianNodes
from core.families.marginal_likelihood import Expectation
from core.growth.evidence.priors import Priors
from core.growth.schedule.two_means import TwoMeans
from core.mixture import exponentiated_gradient, nodes
from core.mixture.exponentiated_gradient import ExponentiatedGradient
from core.scaling import Scaling, given
from core.threshold.cuts import cost_of_cuts, cuts_between
from core.tree.subspaces import SubspaceTree

Patch = tuple[object, str, Any]
PAPER: dict[str, Any] = {"profile": "paper"}
EXPERIMENTS = ("exp. 1", "exp. 2", "exp. 3")
FEW_DATA_SETS = 4
"""Data sets of a synthetic experiment for the means of the default profile; the paper profile uses DATA_SETS."""


# the paper's own text, put in place of ours


def most_separated_by_the_letter(self: TwoMeans, tree: SubspaceTree) -> int | None:
    """The level alone: what a node was split already does not count."""
    centers = self.centroids()
    ratio = np.linalg.norm(centers[:, 0] - centers[:, 1], axis=1) / 2.0**tree.level
    node = int(ratio.argmax())
    return node if ratio[node] > 0 else None


def hyperplane_by_the_letter(self: TwoMeans, node: int) -> tuple[FloatArray, float]:
    """The offset with a normal of the centroids' distance in length."""
    left, right = self.centroids()[node]
    gap = left - right
    return gap / np.linalg.norm(gap), float(gap @ (left + right) / 2)


def map_gaussians(self: Gaussian, *, predictive: bool) -> GaussianNodes:  # noqa: ARG001
    """The MAP Gaussian in place of the posterior predictive."""
    return GaussianNodes(self.n_features)


def weights_last(self: DensityModel) -> None:
    """A round of one sample that moves the weights by the densities after it was learned."""
    batch, self._round = self._round.samples, Round()
    if batch is None:
        return
    before, self.n_learned = self.n_learned, self.n_learned + 1
    self._count(self._learned(batch, before))
    self.mixture.learn(self.mixture.shares(self.densities.log_density(batch.learned)))
    self.growth.grow(before, self.n_learned)
    self._log_weights = None


OUR_EXPECTED = Priors.expected


def without_correlations(self: Priors, parent: IntArray, variance: FloatArray) -> Expectation:
    """What a group expects, with no credit for the correlations of its parent."""
    return replace(OUR_EXPECTED(self, parent, variance), credit=np.zeros(len(parent)))


LETTER_RATIO: Patch = (TwoMeans, "most_separated", most_separated_by_the_letter)
LETTER_OFFSET: Patch = (TwoMeans, "hyperplane", hyperplane_by_the_letter)
LETTER_ORDER: Patch = (DensityModel, "end_round", weights_last)
FIXED_RATE: Patch = (ExponentiatedGradient, "rate", lambda _: 0.1)
NO_RATIO_CAP: Patch = (exponentiated_gradient, "RATIO_CAP", np.inf)
GAUSSIANS: Patch = (Gaussian, "nodes", map_gaussians)
NO_CAP: Patch = (student_nodes, "MOST_FREEDOM", 1e6)
NOT_DRAWN_IN: Patch = (model, "REACH", 1e12)
NO_FLOOR: list[Patch] = [(nodes, "VARIANCE_FLOOR", 0.0)]
UNCORRELATED: Patch = (Priors, "expected", without_correlations)


def strength(value: float) -> Patch:
    """One strength of the prior for every node, in place of the best of nine."""
    return (marginal_likelihood, "STRENGTHS", np.array([value]))


DEVIATIONS: list[tuple[str, dict[str, Any], list[Patch]]] = [
    ("paper profile", PAPER, []),
    ("split ratio to the letter", PAPER, [LETTER_RATIO]),
    ("offset to the letter", PAPER, [LETTER_OFFSET]),
    ("weights after learning", PAPER, [LETTER_ORDER]),
    ("data 10 from the origin", PAPER | {"shift": 10.0}, []),
    ("EG, theta 0.1, ratio not clipped", PAPER, [FIXED_RATE, NO_RATIO_CAP]),
    ("EG, Theorem 1's theta, ratio not clipped", PAPER, [NO_RATIO_CAP]),
    ("paper profile, soft_bayes", PAPER | {"mixture": "soft_bayes"}, []),
    ("paper profile, prior_count 1", PAPER | {"prior_count": 1.0}, []),
    ("paper profile, prior_count 0.01", PAPER | {"prior_count": 0.01}, []),
    ("paper profile, beta 3.5", PAPER | {"beta": 3.5}, []),
]
SETTINGS: list[tuple[str, dict[str, Any], list[Patch]]] = [
    ("default profile", {}, []),
    ("Gaussians for Student t", {}, [GAUSSIANS]),
    ("Student t, freedom not capped", {}, [NO_CAP]),
    ("mixture soft_bayes", {"mixture": "soft_bayes"}, []),
    ("mixture eg", {"mixture": "eg"}, []),
    ("split scheduled", {"split": "scheduled"}, []),
    ("split both", {"split": "both"}, []),
    ("prior strength 1", {}, [strength(1.0)]),
    ("prior strength 16", {}, [strength(16.0)]),
    ("no correlations from the parent", {}, [UNCORRELATED]),
    ("prior_count 0.3", {"prior_count": 0.3}, []),
    ("prior_count 3", {"prior_count": 3.0}, []),
    ("round_growth 0 (every sample)", {"round_growth": 0.0}, []),
    ("round_growth 0.1", {"round_growth": 0.1}, []),
    ("max_nodes 31", {"max_nodes": 31}, []),
    ("max_nodes 7", {"max_nodes": 7}, []),
    ("no variance floor", {}, NO_FLOOR),
    ("samples not drawn in", {}, [NOT_DRAWN_IN]),
]


@cache
def data_sets(experiment: str, number: int = FEW_DATA_SETS) -> Sequence[Stream]:
    """The streams over which a figure is the mean."""
    if experiment == "exp. 3":
        return [vehicle()]
    return [SYNTHETIC[experiment](seed) for seed in range(number)]


def ablated(title: str, variants: Iterable[tuple[str, dict[str, Any], list[Patch]]], number: int) -> Table:
    """Nats per normal round, and ranking AUC, of each variant."""
    rows = []
    for name, config, patches in variants:
        row: dict[str, Cell] = {"variant": name}
        with ExitStack() as stack:
            for place, attribute, value in patches:
                stack.enter_context(patch.object(place, attribute, value))
            for experiment in EXPERIMENTS:
                row |= measured(data_sets(experiment, number), experiment, config)
        rows.append(row)
        print(name, row, file=sys.stderr)
    return Table(title, _columns(("loss", "nats"), ("auc", "AUC"), ("cpu", "CPU ms")), rows, [versions("numpy")])


def measured(streams: Sequence[Stream], experiment: str, config: dict[str, Any]) -> dict[str, Cell]:
    """Means over these streams: log-loss per normal round, ranking AUC, CPU time in milliseconds."""
    losses, aucs, seconds = [], [], []
    for X, anomalous in streams:
        start = process_time()
        scores = round_by_round(_configured(X.shape[1], **config), X, anomalous)
        seconds.append(process_time() - start)
        losses.append(log_loss(scores, anomalous).per_normal_round)
        aucs.append(ranking_auc(scores, anomalous) or np.nan)
    means = {"loss": np.mean(losses), "auc": np.mean(aucs), "cpu": 1000 * np.mean(seconds)}
    return {f"{experiment} {what}": float(value) for what, value in means.items()}


def round_by_round(config: DetectorConfig, X: FloatArray, anomalous: BoolArray) -> FloatArray:
    """The scores that a Detector gives one by one when it learns normals only, a round at a time: so it is faster."""
    learner = DensityModel(config)
    scaling = given(config)
    assert isinstance(scaling, Scaling)
    X = scaling.apply(X)
    scores = np.empty(len(X))
    t = 0
    while t < len(X):
        normals = np.flatnonzero(~anomalous[t:])
        rows = slice(t, t + normals[learner.room - 1] + 1 if len(normals) >= learner.room else len(X))
        batch = learner.evaluate(X[rows], np.full(rows.stop - rows.start, np.nan))
        scores[rows] = -learner.mixture.log_p(batch.log_density)
        if not anomalous[rows].all():
            learner.learn(batch.rows(~anomalous[rows]))
        t = rows.stop
    return scores


def _configured(m: int, *, shift: float = 0.0, **fields: Any) -> DetectorConfig:
    """A config of the experiments; the data can be moved away from the origin."""
    given = {"scaling": {"location": [-shift] * m, "scale": [1.0] * m}} if shift else {}
    return itan_config(m, **given, **fields)


def _columns(*measures: tuple[str, str]) -> list[Column]:
    form = {"loss": ".3f", "auc": ".3f", "cpu": ".0f", "ratio": ".2f", "cost": ".1f"}
    heads = [(e, key, name) for key, name in measures for e in EXPERIMENTS]
    return [Column("variant", "variant"), *(Column(f"{e} {key}", f"{e}: {name}", form[key]) for e, key, name in heads)]


START = 64
"""First rows of the hard data, which do not count: as many as the longest warm-up."""


def hard_data() -> Table:
    """Experiment 1 in odd units, and with one outlier learned as normal; losses cut at 50 nats, from row START on."""
    cases: list[tuple[str, float, float, str, list[Patch]]] = [
        ("as given, scaling none", 1.0, 0.0, "none", []),
        ("as given, scaling auto", 1.0, 0.0, "auto", []),
        ("features times 1000 and 0.001 in turn, scaling none", 1000.0, 0.0, "none", []),
        ("features times 1000 and 0.001 in turn, scaling auto", 1000.0, 0.0, "auto", []),
        ("row 100 is 1e6 in all features", 1.0, 1e6, "none", []),
        ("row 100 is 1e6 in all features, not drawn in", 1.0, 1e6, "none", [NOT_DRAWN_IN]),
    ]
    rows = []
    for name, unit, outlier, scaling, patches in cases:
        row: dict[str, Cell] = {"variant": name}
        with ExitStack() as stack:
            for place, attribute, value in patches:
                stack.enter_context(patch.object(place, attribute, value))
            results = [_on_hard(stream, unit, outlier, scaling) for stream in data_sets("exp. 1")]
        row["exp. 1 loss"], row["exp. 1 auc"] = (float(v) for v in np.mean(results, 0))
        rows.append(row)
        print(name, row, file=sys.stderr)
    return Table("The default profile on hard data", _columns(("loss", "clipped nats"), ("auc", "AUC")), rows)


def _on_hard(stream: Stream, unit: float, outlier: float, scaling: str) -> tuple[float, float]:
    X, anomalous = stream[0] * np.where(np.arange(stream[0].shape[1]) % 2, 1 / unit, unit), stream[1].copy()
    if outlier:
        X[100], anomalous[100] = outlier, False
    fields = {"n_features": X.shape[1], "scaling": scaling, "learn_from": "labelled_normal"}
    scores = prequential(ItanModel(DetectorConfig.from_dict(fields)), X, anomalous, normals_only=True).scores[START:]
    return log_loss(scores, anomalous[START:]).clipped, ranking_auc(scores, anomalous[START:]) or np.nan


RULES: list[tuple[str, dict[str, Any]]] = [
    ("ogd (Alg. 3)", {"threshold": "ogd"}),
    ("hindsight", {"threshold": "hindsight"}),
    ("weighted", {"threshold": "weighted"}),
    ("weighted, labels trusted", {"threshold": "weighted", "labels_trusted": True}),
    ("weighted, never a label", {"threshold": "weighted", "unlabelled": True}),
]
COSTS = ((1.0, 1.0), (1.0, 0.2))


def thresholds() -> Table:
    """Cost of each rule over that of the best fixed threshold in hindsight, labels at once; scores of the default."""
    rows: list[dict[str, Cell]] = []
    for missed, alarm in COSTS:
        rows.append({"variant": f"C_1 = {missed:g}, C_-1 = {alarm:g}: best fixed threshold"})
        rows += [{"variant": f"C_1 = {missed:g}, C_-1 = {alarm:g}: {name}"} for name, _ in RULES]
        for experiment in EXPERIMENTS:
            scored = _scores(experiment)
            best = [_best_fixed(scores, anomalous, missed, alarm) for scores, anomalous in scored]
            rows[-len(RULES) - 1][f"{experiment} cost"] = float(np.mean(best))
            for row, (_, fields) in zip(rows[-len(RULES) :], RULES, strict=True):
                costs = [_cost_of_rule(dict(fields), *each, missed, alarm) for each in scored]
                row[f"{experiment} cost"] = float(np.mean(costs))
                row[f"{experiment} ratio"] = float(np.mean(costs) / np.mean(best))
    return Table("Cost, and over the best fixed one's", _columns(("cost", "cost"), ("ratio", "ratio")), rows)


@cache
def _scores(experiment: str) -> Sequence[Stream]:
    return [(round_by_round(itan_config(X.shape[1]), X, a), a) for X, a in data_sets(experiment)]


def _cost_of_rule(fields: dict[str, Any], scores: FloatArray, anomalous: Any, missed: float, alarm: float) -> float:
    labelled = not fields.pop("unlabelled", False)
    costs = {"cost_false_negative": missed, "cost_false_positive": alarm}
    rule = DecisionRule(DetectorConfig.from_dict({"n_features": 1} | costs | fields), 0.0)
    cost = 0.0
    for t, (score, truth) in enumerate(zip(scores.tolist(), anomalous.tolist(), strict=True), 1):
        decided = rule.decide(t, np.array([[float(t)]]), np.array([score]), np.array([np.nan]))
        flagged, label = bool(decided.is_anomaly[0]), 1 if truth else -1
        cost += missed * (truth and not flagged) + alarm * (flagged and not truth)
        if labelled:
            rule.label(t, score, 0.0, label)
            if decided.incident[0] and decided.incident[0] == rule.incidents.id:
                rule.incidents.label(label, 0, flagged=flagged)
            rule.follow_labels()
    return cost


def _best_fixed(scores: FloatArray, anomalous: Any, missed: float, alarm: float) -> float:
    order = scores.argsort(kind="stable")
    step = np.where(anomalous[order], missed, -alarm)
    cuts = cuts_between(scores[order])
    return float((cost_of_cuts(cuts, scores[order], step) + alarm * (~anomalous).sum()).min())


BLOCK = 20
"""Rows observed, and labels sent, at a time."""


def late_labels() -> Table:
    """Ranking AUC by what the density is told, and when; from row START on."""
    cases: list[tuple[str, str, float, int]] = [
        ("never a label", "all", 0.0, 0),
        ("all, 20 % of labels 200 rows late", "all", 0.2, 200),
        ("all, every label 200 rows late", "all", 1.0, 200),
        ("all, every label within 20 rows", "all", 1.0, 0),
        ("decided_normal, every label 200 rows late", "decided_normal", 1.0, 200),
        ("labelled_normal, 20 % of labels 200 rows late", "labelled_normal", 0.2, 200),
        ("labelled_normal, every label 200 rows late", "labelled_normal", 1.0, 200),
        ("labelled_normal, every label within 20 rows", "labelled_normal", 1.0, 0),
    ]
    rows = []
    for name, learn_from, share, delay in cases:
        row: dict[str, Cell] = {"variant": name}
        for experiment in EXPERIMENTS:
            aucs = [_told(stream, learn_from, share, delay) for stream in data_sets(experiment)]
            row[f"{experiment} auc"] = float(np.mean(aucs))
        rows.append(row)
        print(name, row, file=sys.stderr)
    return Table("What labels do to the density: learn_from, and labels", _columns(("auc", "AUC")), rows)


def _told(stream: Stream, learn_from: str, share: float, delay: int) -> float:
    X, anomalous = stream
    config = {"n_features": X.shape[1], "scaling": "none", "learn_from": learn_from}
    detector = Detector(DetectorConfig.from_dict(config))
    told = np.random.default_rng(1).random(len(X)) < share
    kept: list[Records] = []
    scores = []
    for t in range(0, len(X), BLOCK):
        seen = detector.observe(X[t : t + BLOCK])
        scores.append(seen.score)
        kept.append(seen.records)
        past = slice(t - delay, t - delay + BLOCK)
        if past.start >= 0 and told[past].any():
            detector.feedback(kept[past.start // BLOCK][told[past]], anomalous[past][told[past]].tolist())
    return ranking_auc(np.concatenate(scores)[START:], anomalous[START:]) or np.nan


def tables(chosen: Sequence[str]) -> Iterator[Table]:
    """The chosen tables."""
    if "deviations" in chosen:
        yield ablated("The paper profile, and the paper's letter", DEVIATIONS, DATA_SETS)
    if "settings" in chosen:
        yield ablated("The default profile, one setting changed", SETTINGS, FEW_DATA_SETS)
    if "data" in chosen:
        yield hard_data()
    if "thresholds" in chosen:
        yield thresholds()
    if "labels" in chosen:
        yield late_labels()


if __name__ == "__main__":
    for table in tables(sys.argv[1:] or ["deviations", "settings", "data", "thresholds", "labels"]):
        print(table.to_markdown(), flush=True)
