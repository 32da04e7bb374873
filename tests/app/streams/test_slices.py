"""Work in slices leaves what the same work in one piece leaves, and nothing wider."""

import numpy as np

from app.streams.slices import FIRST_ROWS, feedback_slices, join_slices, observe_slices
from core import Detector, DetectorConfig, Records

M = 8
LABELS = [False] * 40


def trained() -> Detector:
    detector = Detector(DetectorConfig(n_features=M))
    detector.observe(np.random.default_rng(3).normal(size=(200, M)))
    return detector


def row_bytes(records: Records) -> int:
    return records.rows.dtype.itemsize


async def test_records_of_slices_are_no_wider_than_those_of_one_piece():
    X = np.random.default_rng(4).normal(size=(40, M))
    whole = trained().observe(X).records
    detector = trained()
    parts = [detector.observe(X[:FIRST_ROWS]).records]
    parts += [out.records for out in await observe_slices(detector, X[FIRST_ROWS:], None)]
    joined = await join_slices(parts)
    assert len(parts) > 1
    assert joined.to_bytes() == whole.to_bytes()
    assert (await feedback_slices(detector, whole, LABELS)).records.rows.dtype.itemsize == row_bytes(whole)


async def test_an_outlier_makes_its_batch_wide():
    X = np.random.default_rng(4).normal(size=(40, M))
    X[30] = 1e6
    detector = trained()
    parts = [detector.observe(X[:FIRST_ROWS]).records, detector.observe(X[FIRST_ROWS:]).records]
    assert row_bytes(await join_slices(parts)) == row_bytes(parts[1]) > row_bytes(parts[0])
