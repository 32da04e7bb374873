"""A thinned run of samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.streams.views.columns import Columns
from app.streams.views.downsampling import POINTS_PER_BUCKET, Downsampler


def samples(first: int, scores: list[float], marked: set[int] = frozenset()) -> Columns:
    n = len(scores)
    seq = np.arange(first, first + n)
    flags = np.array([int(s) in marked for s in seq], bool)
    zeros = np.zeros(n)
    none = np.zeros(n, np.int8)
    said = (np.array(scores), zeros, flags, zeros, np.zeros(n, np.int64), none)
    return Columns(seq, np.array([""] * n, object), zeros, zeros, *said, np.zeros(n, bool), none, zeros)


def thinned(rows: Columns, points: int, cuts: list[int]) -> tuple[Columns, Downsampler]:
    downsampler = Downsampler(int(rows.seq[0]), int(rows.seq[-1]), points)
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        downsampler.add(rows[start:end])
    kept = downsampler.rows()
    assert kept is not None
    return kept, downsampler


@given(
    st.integers(1, 400),
    st.integers(16, 60),
    st.sampled_from([0.0, 0.02, 0.5]),
    st.integers(0, 3),
    st.integers(0, 2**32),
)
def test_it_keeps_within_its_points_in_order_however_it_is_cut(n, points, share, n_cuts, seed):
    lot = np.random.default_rng(seed)
    scores = np.where(lot.random(n) < 0.1, np.nan, lot.integers(-5, 6, size=n))
    marked = set((1 + np.flatnonzero(lot.random(n) < share)).tolist())
    cuts = sorted(lot.integers(0, n + 1, size=n_cuts).tolist())
    rows = samples(1, scores.tolist(), marked)
    kept, downsampler = thinned(rows, points, cuts)
    seqs = kept.seq.tolist()
    assert len(seqs) <= points
    assert seqs == sorted(set(seqs))
    assert downsampler.is_downsampled == (len(seqs) < n)
    known = rows.score[~np.isnan(rows.score)]
    if len(known):
        assert np.nanmax(kept.score) == known.max()
    if n <= points:
        assert len(seqs) == n
    if len(marked) <= points // 2:
        assert marked <= set(seqs)
        assert not downsampler.marked_downsampled


@pytest.mark.parametrize("cuts", [[], [500], list(range(0, 1000, 7))])
def test_each_stretch_keeps_its_extremes(cuts):
    scores = np.random.default_rng(0).normal(size=1000)
    kept, _ = thinned(samples(1, scores.tolist()), 100, cuts)
    width = 1000 // (100 // POINTS_PER_BUCKET)
    for start in range(0, 1000, width):
        bucket = slice(start, start + width)
        assert {start + 1 + scores[bucket].argmin(), start + 1 + scores[bucket].argmax()} <= set(kept.seq.tolist())


def test_more_marks_than_there_is_room_for_are_thinned_and_said():
    kept, downsampler = thinned(samples(1, list(range(1000)), set(range(1, 1001))), 100, [])
    assert downsampler.marked_downsampled
    assert len(kept) <= 100
