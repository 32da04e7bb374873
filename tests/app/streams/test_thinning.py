"""A thinned run of samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.streams.columns import Columns
from app.streams.thinning import Thinning

SCORES = st.one_of(st.just(np.nan), st.integers(-5, 5).map(float))


def samples(first: int, scores: list[float], marked: set[int] = frozenset()) -> Columns:
    n = len(scores)
    seq = np.arange(first, first + n)
    flags = np.array([int(s) in marked for s in seq], bool)
    zeros = np.zeros(n)
    return Columns(seq, np.array([""] * n, object), zeros, np.array(scores), zeros, flags, np.zeros(n, np.int8), zeros)


def thinned(rows: Columns, points: int, cuts: list[int]) -> tuple[Columns, Thinning]:
    thinning = Thinning(int(rows.seq[0]), int(rows.seq[-1]), points)
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        thinning.add(rows[start:end])
    kept = thinning.rows()
    assert kept is not None
    return kept, thinning


@given(st.lists(SCORES, min_size=1, max_size=400), st.integers(16, 60), st.data())
def test_it_keeps_within_its_points_in_order_however_it_is_cut(scores, points, data):
    n = len(scores)
    marked = data.draw(st.sets(st.integers(1, n), max_size=n))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    rows = samples(1, scores, marked)
    kept, thinning = thinned(rows, points, cuts)
    seqs = kept.seq.tolist()
    assert len(seqs) <= points
    assert seqs == sorted(set(seqs))
    assert thinning.is_thinned == (len(seqs) < n)
    known = rows.score[~np.isnan(rows.score)]
    if len(known):
        assert np.nanmax(kept.score) == known.max()
    if n <= points:
        assert len(seqs) == n
    if len(marked) <= points // 2:
        assert marked <= set(seqs)
        assert not thinning.marked_thinned


@pytest.mark.parametrize("cuts", [[], [500], list(range(0, 1000, 7))])
def test_each_stretch_keeps_its_extremes(cuts):
    scores = np.random.default_rng(0).normal(size=1000)
    kept, thinning = thinned(samples(1, scores.tolist()), 100, cuts)
    width = thinning._width
    for start in range(0, 1000, width):
        bucket = slice(start, start + width)
        assert {start + 1 + scores[bucket].argmin(), start + 1 + scores[bucket].argmax()} <= set(kept.seq.tolist())


def test_more_marks_than_there_is_room_for_are_thinned_and_said():
    kept, thinning = thinned(samples(1, list(range(1000)), set(range(1, 1001))), 100, [])
    assert thinning.marked_thinned
    assert len(kept) <= 100
