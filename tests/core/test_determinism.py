"""The same samples and labels give the same bits, however they were cut, and wherever the run was interrupted."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import Detector
from tests.core.samples import CONTEXTS, clusters, detector, feed
from tests.core.samples import VARIANTS as PLAIN

N = 130
X = clusters(N, missing=0.05)
X[np.isnan(X[:, [0, 2]]).all(1), 0] = 0.25  # the second feature may be context, and that alone is no sample
VARIANTS = PLAIN | CONTEXTS
LABELS: dict[int, dict[int, bool | None]] = {
    20: {3: True, 7: False, 8: False},  # during the warm-up
    61: {50: True, 51: False, 60: True, 40: False},
    90: dict.fromkeys(range(45, 60), False),
    110: {50: False, 51: None, 7: True, 60: True},
    121: {i: i == 110 for i in range(90, 120, 4)},
}
CUTS = {
    "one by one": list(range(N)),
    "37 rows": list(range(0, N, 37)),
    "growing": [1, 3, 7, 15, 31, 63, 127],
}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_decisions_and_state_do_not_depend_on_the_cuts(variant):
    whole = detector(**VARIANTS[variant])
    answers, state = feed(whole, X, [], LABELS), whole.to_bytes()
    assert np.isfinite(answers[answers[:, 3] > 0]).all()
    for name, cuts in CUTS.items():
        cut = detector(**VARIANTS[variant])
        assert same(feed(cut, X, cuts, LABELS), answers), name
        assert cut.to_bytes() == state, name


@settings(max_examples=3, deadline=None)
@given(st.sampled_from(sorted(VARIANTS)), st.sets(st.integers(1, N - 1), max_size=12))
def test_random_cuts(variant, cuts):
    whole, cut = detector(**VARIANTS[variant]), detector(**VARIANTS[variant])
    assert same(feed(whole, X, [], LABELS), feed(cut, X, sorted(cuts), LABELS))
    assert whole.to_bytes() == cut.to_bytes()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_restart_at_any_prefix_continues_bit_for_bit(variant):
    """Saved and loaded before each of the first samples, after labels, and then before one in nine, whichever."""
    phase = sorted(VARIANTS).index(variant) % 9
    unbroken = detector(**VARIANTS[variant])
    broken = detector(**VARIANTS[variant])
    records = []
    for t in range(N):
        expected, got = (each.observe(X[t], [1e9 + t]) for each in (unbroken, broken))
        assert same(expected.score, got.score), t
        records.append(got.records)
        if t + 1 in LABELS:
            for i, label in LABELS[t + 1].items():
                unbroken.feedback(records[i], [label])
                records[i] = broken.feedback(records[i], [label]).records
        if t < 9 or t in (31, 32) or t % 9 == phase or t + 1 in LABELS:
            blob = broken.to_bytes()
            broken = Detector.from_bytes(blob)
            assert broken.to_bytes() == blob, t
    assert broken.to_bytes() == unbroken.to_bytes()
    assert same(np.array(broken.threshold), np.array(unbroken.threshold))


LONG = clusters(2000, 2, seed=5, missing=0.02)
LONG_LABELS: dict[int, dict[int, bool | None]] = {
    at: {i: i % 50 == 10 for i in range(at - 90, at, 7)} | {at - 3: None} for at in (300, 741, 1000, 1537, 1999)
}
LONG_CUTS = {
    "2000 x 1": list(range(2000)),
    "37 rows": list(range(0, 2000, 37)),
    "growing": [2**k - 1 for k in range(1, 11)],
}


LONG_FIELDS = {"default": {}, "cap": {"max_nodes": 9, "split": "both"}, "diagonal": {"family": "gaussian_diagonal"}}


@cache
def in_one_batch(variant: str) -> tuple[np.ndarray, bytes]:
    whole = detector(2, **LONG_FIELDS[variant])
    answers = feed(whole, LONG, [], LONG_LABELS)
    assert len(whole.describe()["nodes"]) > 3
    return answers, whole.to_bytes()


@pytest.mark.parametrize("variant", LONG_FIELDS)
@pytest.mark.parametrize("cut", LONG_CUTS)
def test_two_thousand_samples_in_batches_of_every_kind(variant, cut):
    """scikit-learn's incremental estimators broke on a batch larger than all before."""
    answers, state = in_one_batch(variant)
    parts = detector(2, **LONG_FIELDS[variant])
    assert same(feed(parts, LONG, LONG_CUTS[cut], LONG_LABELS), answers)
    assert parts.to_bytes() == state


@pytest.mark.parametrize("mixture", ["tree", "soft_bayes", "eg"])
@pytest.mark.parametrize("split", ["evidence", "scheduled", "both"])
def test_every_mixture_with_every_split(mixture, split):
    whole, parts = detector(3, mixture=mixture, split=split), detector(3, mixture=mixture, split=split)
    answers, state = feed(whole, X, [], LABELS), whole.to_bytes()
    assert same(feed(parts, X, CUTS["37 rows"], LABELS), answers)
    assert parts.to_bytes() == state
    again = Detector.from_bytes(state)
    assert same(again.observe(X, 2e9 + np.arange(N)).score, whole.observe(X, 2e9 + np.arange(N)).score)
    assert again.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
@pytest.mark.parametrize("m", [1, 3, 20])
def test_a_row_scores_the_same_in_any_company(family, m):
    """BLAS gave no row the same last bits alone and in a batch; a detector elsewhere rescaled by the batch."""
    model = detector(m, family=family)
    model.observe(clusters(150, m))
    queries = clusters(1000, m, seed=1, missing=0.1)
    together = model.score(queries)
    for row in range(0, 1000, 37):
        assert together[row] == model.score(queries[row])[0]
    for row in (17, 999):
        outliers = np.full((1000, m), 1e15)
        outliers[row] = queries[row]
        assert model.score(outliers)[row] == together[row]
    assert np.array_equal(model.score(queries[::-1])[::-1], together)


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_the_memory_layout_of_the_samples_does_not_matter(family):
    """A Fortran-ordered matrix (a transposed one, or a data frame's) was summed in another order: other last bits."""
    model = detector(30, family=family)
    model.observe(clusters(100, 30))
    queries = clusters(100, 30, seed=1)
    for layout in (np.asfortranarray(queries), np.repeat(queries, 2, 1)[:, ::2], queries[::-1][::-1], queries.tolist()):
        assert np.array_equal(model.score(layout), model.score(queries))
    plain, fortran = detector(30, family=family), detector(30, family=family)
    plain.observe(queries)
    fortran.observe(np.asfortranarray(queries))
    assert plain.to_bytes() == fortran.to_bytes()


def test_another_sample_gives_another_state():
    """The comparisons above can fail."""
    one, other = detector(), detector()
    one.observe(X)
    changed = X.copy()
    changed[5, 0] = np.nextafter(changed[5, 0], 9)
    other.observe(changed)
    assert one.to_bytes() != other.to_bytes()
