"""Growth by conditional evidence: what a cut explains of the values given their context, and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_t

from core import Detector, DetectorConfig
from core.families import Layout
from core.families.marginal_likelihood import (
    MEAN_COUNT,
    STRENGTHS,
    Expectation,
    choose_prior,
    log_evidence,
    own_scale,
    sub_block,
)
from core.growth.evidence.doubt import STRENGTH, Doubt
from core.growth.evidence.screening import ConditionalScreen, Screen, SideEvidence
from core.mixture.nodes import Nodes

LATENCY_OF_LOAD = ({"name": "latency"}, {"name": "load", "role": "context"})
BOTH_VALUES = ({"name": "latency"}, {"name": "load"})
FLOOR = np.full(2, 1e-4)


def chained(X: np.ndarray, T: np.ndarray, a: float, k0: float) -> np.ndarray:
    """Log densities (n,) of samples one after the other, by the predictive of those before; the prior mean is 0."""
    n, _ = X.shape
    out = []
    for t in range(n):
        before = X[:t]
        mean = before.sum(0) / (t + k0)
        scatter = before.T @ before - (t + k0) * np.outer(mean, mean)
        freedom = a + t
        scale = (a * T + scatter) / freedom * (t + k0 + 1) / (t + k0)
        out.append(multivariate_t(mean, scale, freedom).logpdf(X[t]))
    return np.array(out)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 12))
def test_the_evidence_of_a_part_of_the_columns_is_that_of_the_same_prior(seed, m, n):
    """So log ML(values | context) is a difference: against the product of predictions of the context alone."""
    rng = np.random.default_rng(seed)
    X, root, k0 = rng.normal(size=(n, m)), rng.normal(size=(m, m)), 0.3
    T, a, c = root @ root.T + 0.1 * np.eye(m), 4.0, np.arange(1, m)
    about = X - X.mean(0)
    S = about.T @ about + n * k0 / (n + k0) * np.outer(X.mean(0), X.mean(0))
    count = np.array([float(n)])
    for columns in (np.arange(m), c):
        told = log_evidence(
            count, sub_block(S[None], columns), sub_block(T[None], columns), np.array([a]), np.array([k0])
        )
        expected = chained(X[:, columns], T[np.ix_(columns, columns)], a, k0).sum()
        assert told[0, 0] == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_a_prior_is_chosen_by_what_it_says_of_the_values():
    """Of the first column, given the second; sometimes both together would choose another one."""
    differ = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 2)) * rng.choice([0.1, 1.0, 5.0], 2)
        count, k0, off = np.array([12.0]), np.array([0.1]), X - X.mean(0)
        S = (off.T @ off)[None]
        expected = Expectation(np.ones((1, 2)), np.eye(2)[None], np.zeros(1))
        whole, given_it = (choose_prior(count, S, expected, FLOOR, k0, np.array(c, np.int64)) for c in ([], [1]))
        assert whole.of_context[0] == 0

        def evidence(a: float, columns, S=S, of=given_it, count=count, k0=k0) -> float:
            parts = sub_block(S, np.array(columns)), sub_block(of.scale, np.array(columns))
            return float(log_evidence(count, *parts, np.array([a]), k0)[0, 0])

        tried = {a: evidence(a, [0, 1]) - evidence(a, [1]) for a in STRENGTHS.tolist()}
        assert given_it.strength[0] == max(tried, key=tried.__getitem__)
        assert given_it.log_evidence[0] - given_it.of_context[0] == pytest.approx(max(tried.values()))
        differ += given_it.strength[0] != whole.strength[0]
    assert 0 < differ < 20


def nodes_of(X: np.ndarray, features, **fields) -> int:
    model = Detector(DetectorConfig(features=features, **fields))
    model.observe(X)
    return model.n_nodes


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
@pytest.mark.parametrize("kind", ["gaussian", "poisson", "categorical"])
def test_a_cut_that_only_explains_the_context_is_never_made(kind, family):
    """The context has two modes, the values do not know it. Scored jointly, the same stream is cut."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        mode = rng.random(1500) < 0.5
        context = {
            "gaussian": rng.normal(size=1500) + 9 * mode,
            "poisson": rng.poisson(3 + 40 * mode).astype(float),
            "categorical": 1.0 + mode,
        }[kind]
        X = np.column_stack([rng.normal(size=1500), context])
        features = [{"name": "v"}, {"name": "c", "kind": kind, "role": "context"}]
        assert nodes_of(X, features, family=family) == 1
        if kind != "categorical":
            assert nodes_of(X, [features[0], features[1] | {"role": "value"}], family=family) > 1


@pytest.mark.parametrize("kind", ["gaussian", "categorical"])
def test_a_cut_that_explains_the_values_is_made(kind):
    """Also one along the context, and one that the context does not see at all."""
    rng = np.random.default_rng(1)
    mode = rng.random(1500) < 0.5
    context = rng.normal(size=1500) + 9 * mode if kind == "gaussian" else 1.0 + mode
    independent = rng.normal(size=1500) if kind == "gaussian" else rng.integers(0, 3, 1500).astype(float)
    values = rng.normal(size=1500) * np.where(mode, 0.2, 1.0)
    features = [{"name": "v"}, {"name": "c", "kind": kind, "role": "context"}]
    assert nodes_of(np.column_stack([values, context]), features) > 1
    assert nodes_of(np.column_stack([values + 6 * mode, independent]), features) > 1


def test_a_line_needs_no_cuts_however_the_context_is_spread():
    rng = np.random.default_rng(2)
    load = np.exp(rng.normal(2, 0.8, 2500))
    X = np.column_stack([10 + 2 * load + rng.normal(size=2500), load])
    assert nodes_of(X, LATENCY_OF_LOAD) <= 3 < nodes_of(X, BOTH_VALUES)


def two_by_two() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A value and a context, each with two modes that do not know of the other: samples, and which mode each is of."""
    rng = np.random.default_rng(3)
    of_context, of_values = np.arange(200) < 100, np.arange(200) % 2 == 0
    X = rng.normal(size=(200, 2)) + np.stack([5.0 * of_values, 9.0 * of_context], 1)
    return X, of_context, of_values


@pytest.mark.parametrize("diagonal", [False, True])
def test_screening_ranks_cuts_by_what_they_explain_beyond_the_context(diagonal):
    X, of_context, of_values = two_by_two()
    cuts = np.stack([of_context, of_values], 1)
    expected, floor = np.full(2, 0.5), np.full(2, 1e-4)
    whole, context = (Screen(X[:, c], expected[c], floor[c], diagonal=diagonal) for c in ([0, 1], [1]))
    assert whole(cuts).argmax() == 0
    judged = ConditionalScreen(whole, context, doubt_about(X, diagonal))(cuts)
    assert judged.argmax() == 1
    assert judged[1] == pytest.approx(whole(cuts)[1], abs=20.0)


def doubt_about(X: np.ndarray, diagonal: bool = False) -> Doubt:
    """Of the second column, which is context."""
    family = "gaussian_diagonal" if diagonal else "gaussian"
    nodes = Nodes(DetectorConfig(features=LATENCY_OF_LOAD, family=family, scaling="none"))
    return Doubt(nodes, np.zeros(1, np.int64), X, np.zeros_like(X), np.full(2, 0.5))


@pytest.mark.parametrize("diagonal", [False, True])
def test_context_that_does_not_know_the_sides_leaves_them_in_doubt(diagonal):
    """By the entropy of the shares, if the whole sample knows; by nothing, if both do."""
    X, of_context, of_values = two_by_two()
    doubt = doubt_about(X, diagonal)(np.stack([of_context, of_values], 1))
    assert doubt[0] == pytest.approx(0.0, abs=1.0)
    assert doubt[1] == pytest.approx(200 * np.log(2), rel=0.1)


@pytest.mark.parametrize("c", [1, 3])
def test_each_sample_is_judged_by_the_others(c):
    """The predictive of a side without one of its samples: that of the same side made anew."""
    rng = np.random.default_rng(c)
    names = [{"name": "v"}, *({"name": f"c{i}", "role": "context"} for i in range(c))]
    nodes = Nodes(DetectorConfig(features=names, scaling="none"))
    X = rng.normal(size=(30, c + 1)) @ rng.normal(size=(c + 1, c + 1))
    left = rng.random(30) < 0.4
    doubt = Doubt(nodes, np.zeros(1, np.int64), X, np.zeros_like(X), np.full(c + 1, 0.5))
    told = doubt._about(left[:, None], nodes.block_context, nodes.context)[0]
    expected = 0.0
    for i in range(30):
        terms = []
        for side in (left, ~left):
            scale = own_scale_of(X[side][:, 1:], nodes.prior.floor[1:])
            rest = X[side & (np.arange(30) != i)][:, 1:]
            k, freedom = len(rest) + MEAN_COUNT, len(rest) + STRENGTH
            mean, off = rest.mean(0), rest - rest.mean(0)
            # the prior's pseudo-samples lie at the mean of the side
            shift = np.outer(mean - X[side][:, 1:].mean(0), mean - X[side][:, 1:].mean(0))
            T = off.T @ off + shift * len(rest) * MEAN_COUNT / k + STRENGTH * np.diag(scale)
            center = (len(rest) * mean + MEAN_COUNT * X[side][:, 1:].mean(0)) / k
            law = multivariate_t(center, T / freedom * (k + 1) / k, freedom)
            terms.append(np.log(side.sum()) + law.logpdf(X[i, 1:]))
        own = terms[0] if left[i] else terms[1]
        expected += np.logaddexp(*terms) - own
    assert told == pytest.approx(expected, rel=1e-9)


def own_scale_of(C: np.ndarray, floor: np.ndarray) -> np.ndarray:
    S = (C - C.mean(0)).T @ (C - C.mean(0))
    return own_scale(np.array([float(len(C))]), S[None], np.full(C.shape[1], 0.5), floor)[0]


def test_the_evidence_of_chosen_factors_is_theirs_alone():
    rng = np.random.default_rng(4)
    layout = Layout(("poisson", "bernoulli", "categorical"))
    X = np.column_stack([rng.poisson(4, 50), rng.random(50) < 0.3, rng.integers(0, 4, 50)]).astype(float)
    Z = np.column_stack([2 * np.sqrt(X[:, 0]), X[:, 1], np.minimum(X[:, 2], 3)])
    rows, _ = layout.columns(Z, np.zeros_like(Z))
    side = rng.random((50, 3)) < 0.5
    evidence = [
        SideEvidence(layout, rows, layout.start()[None], only)(side)
        for only in (None, np.array([0]), np.array([1, 2]), np.zeros(0, np.int64))
    ]
    np.testing.assert_allclose(evidence[0], evidence[1] + evidence[2])
    assert not evidence[3].any()
    assert not np.allclose(evidence[0], evidence[1])
