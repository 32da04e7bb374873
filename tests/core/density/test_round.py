"""A round's samples, however they came."""

import numpy as np
import pytest

from core.density.round import Batch, Round

N, M, NODES = 12, 3, 5


def batch(n: int = N) -> Batch:
    rng = np.random.default_rng(0)
    Z, learned, spread = rng.normal(size=(3, n, M))
    log_density, log_p = rng.normal(size=(n, NODES)), rng.normal(size=n)
    return Batch(Z, log_density, log_p, np.arange(n, dtype=float), learned, spread, spread > 0)


@pytest.mark.parametrize("cuts", [[], [5], list(range(1, N)), [1, 11]], ids=["whole", "two", "singles", "three"])
@pytest.mark.parametrize("size", [N, N + 4])
def test_a_round_holds_its_samples_in_order_however_they_were_cut(cuts, size):
    whole, held = batch(), Round()
    for begin, end in zip([0, *cuts], [*cuts, N], strict=True):
        held.add(whole.rows(slice(begin, end)), size)
    assert held.n == N
    assert held.samples is not None
    for column, expected in zip(held.samples.columns(), whole.columns(), strict=True):
        assert np.array_equal(column, expected)
        assert column.dtype == expected.dtype


def test_a_round_of_nothing_has_no_samples():
    assert Round().samples is None


def test_samples_that_come_alone_share_the_arrays_of_the_round():
    """A handful of small arrays for each took as much memory again as their numbers."""
    whole, held = batch(), Round()
    bases = set()
    for i in range(N):
        held.add(whole.rows(slice(i, i + 1)), N + 1)
        assert held.samples is not None
        bases |= {id(column.base) for column in held.samples.columns()}
    assert len(bases) == len(whole.columns())
    assert not any(np.shares_memory(a, b) for a, b in zip(held.samples.columns(), whole.columns(), strict=True))
