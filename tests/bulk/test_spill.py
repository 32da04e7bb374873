"""Rows that go through the disk come back by streams, in the order in which they came, whatever fits in memory."""

from collections import defaultdict

import numpy as np
import pytest

from app.bulk.reading.blocks import Block
from app.bulk.spill import Spill, streams_in

N = 3000
STREAMS = [f"s{i}" for i in range(7)]


def blocks(names):
    rng = np.random.default_rng(0)
    for first in range(0, N, 500):
        streams = rng.choice(np.array(names, object), 500)
        rows, ids = np.arange(first, first + 500), np.array([f"id{i}" for i in range(500)], object)
        ids[3] = None
        times, label = rng.normal(size=500), rng.integers(-1, 2, 500).astype(np.int8)
        yield Block(streams, rng.normal(size=(500, 2)), times, ids, label, np.full(500, np.nan), rows)


@pytest.mark.parametrize("held_bytes", [10**9, 50_000, 1])
@pytest.mark.parametrize("names", [STREAMS, STREAMS[:1]])
def test_rows_come_back(tmp_path, names, held_bytes):
    spill, expected = Spill(tmp_path / "spill", 3, 2), defaultdict(list)
    for block in blocks(names):
        spill.take(block, 5)
        for i, stream in enumerate(block.streams):
            expected[stream].append((block.rows[i], *block.X[i], block.times[i], block.ids[i] or "", block.label[i]))
    found = {}
    for part in spill.close():
        for stream, parts in streams_in(part, held_bytes):
            assert stream not in found
            found[stream] = [
                (int(place[1]), *x, time, name, label)
                for rows in parts
                for x, time, name, label, place in zip(
                    rows.X, rows.times, rows.ids, rows.label, rows.places, strict=True
                )
                if place[0] == 5
            ]
    assert found == expected
