"""The index of ids in blocks gives the seqs of every id, whatever the growth of the log, and few others."""

import random

import pytest

from app.storage import MAX_SEQ, Entry, KnownIds, Position, bucket_of
from app.streams.log.id_index import RECORD_BYTES, Growth, candidates, digest_of, value_of


class Index:
    """The buckets as a store keeps them."""

    def __init__(self) -> None:
        self.buckets: dict[int, bytes] = {}

    def add(self, names: list[str], first_seq: int, oldest_seq: int) -> int:
        """Add the ids of a batch; give how many buckets were written."""
        last = first_seq + len(names) - 1
        growth = Growth([Entry(Position(last, 0), b"", first_seq, tuple(names))], oldest_seq, last - oldest_seq + 1)
        n = len(self.buckets)
        written = growth.buckets(n, {number: self.buckets[number] for number in growth.needed(n)})
        self.buckets |= written
        assert set(self.buckets) == set(range(len(self.buckets)))
        return len(written)

    def seqs(self, name: str) -> list[int]:
        return candidates({name: digest_of(name)}, KnownIds({}, len(self.buckets), self.buckets)).get(name, [])


@pytest.mark.parametrize("first", [1, 2**32 - 700, 2**40, MAX_SEQ - 5_000])
def test_every_id_has_its_seqs_and_hardly_any_other(first):
    generator, index, expected, seq = random.Random(first), Index(), {}, first
    while seq < first + 4_000:
        names = [generator.choice(["", "often", f"sample {seq + i}"]) for i in range(generator.choice([1, 30, 700]))]
        for i, name in enumerate(names):
            expected.setdefault(name, []).append(seq + i)
        index.add(names, seq, first)
        seq += len(names)
    del expected[""]
    assert {name: index.seqs(name) for name in expected} == expected
    assert not any(index.seqs(f"unknown {n}") for n in range(1_000))


def test_old_ids_are_dropped_and_the_index_stays_small():
    index = Index()
    for first in range(1, 60_000, 500):
        index.add([f"sample {seq}" for seq in range(first, first + 500)], first, max(1, first - 3_500))
    n = len(index.buckets)
    assert n == 4_000 // 16
    assert sum(map(len, index.buckets.values())) < 1.2 * 4_000 * RECORD_BYTES + 7 * n
    assert index.seqs("sample 59900") == [59_900]
    assert index.seqs("sample 1") == []


def test_the_first_ids_of_a_long_log_make_few_buckets():
    index = Index()
    index.add([f"sample {seq}" for seq in range(1_000_000, 1_000_500)], 1_000_000, 1)
    assert len(index.buckets) == 2 * 32
    assert index.seqs("sample 1000499") == [1_000_499]


def test_entries_without_ids_need_no_index():
    assert Index().add(["", ""], 1, 1) == 0


def test_a_digest_decides_on_the_bucket():
    assert [bucket_of(value_of(bytes([n, 0, 0, 0, 0])), 6) for n in range(10)] == [0, 1, 2, 3, 4, 5, 2, 3, 0, 1]
