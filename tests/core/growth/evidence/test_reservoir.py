"""The reservoir: what it keeps of each leaf."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.growth.evidence.reservoir import LEAST, LEAST_A_FEATURE, TOTAL, Reservoir
from tests.effort import tries


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=tries(30))
def test_a_window_tells_from_where_on_a_leafs_rows_are_all_there(sizes, seed):
    rng, m = np.random.default_rng(seed), 1
    reservoir, leaves = Reservoir(m), 40
    reservoir.grow(leaves)
    everything, n = [], 0
    for size in sizes:
        ordinal = np.arange(n + 1, n + size + 1)
        leaf = rng.integers(0, 3, size)
        reservoir.add(ordinal[:, None].astype(float), np.zeros((size, m)), ordinal, ordinal.astype(float), leaf)
        reservoir.trim(leaves)
        everything += zip(ordinal.tolist(), leaf.tolist(), strict=True)
        n += size
    for leaf in range(3):
        rows = [o for o, at in everything if at == leaf]
        kept = reservoir.ordinal[reservoir.of(leaf)].tolist()
        assert kept == rows[-max(LEAST, LEAST_A_FEATURE * (m + 1), TOTAL // leaves) :]
        assert kept == [o for o in rows if o >= reservoir.window[leaf]]
        assert np.array_equal(reservoir.x[reservoir.of(leaf), 0], kept)


def test_a_row_goes_and_comes_back_in_its_place_unless_it_is_too_old():
    reservoir = Reservoir(1)
    ordinal = np.arange(1, 2001)
    reservoir.add(ordinal[:, None].astype(float), np.zeros((2000, 1)), ordinal, ordinal.astype(float), 0 * ordinal)
    reservoir.trim(1)
    before = reservoir.ordinal.copy()
    assert (before[0], reservoir.window[0]) == (2001 - TOTAL, 2001 - TOTAL)
    for ordinal, back in ((1500, True), (5, False)):
        reservoir.remove(ordinal)
        assert ordinal not in reservoir.ordinal
        reservoir.insert(np.array([float(ordinal)]), np.zeros(1), ordinal, float(ordinal), 0)
        assert (ordinal in reservoir.ordinal) == back
    assert np.array_equal(reservoir.ordinal, before)
    assert np.array_equal(reservoir.x[:, 0], before)
