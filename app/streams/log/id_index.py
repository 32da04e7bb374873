"""The index of client ids in blocks: nine bytes a sample, in buckets of a hash table that grows by linear hashing.

It gives candidates: an id in the log has the seq of one of them, and whether it does, only the block shows.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from app.storage import Entry, KnownIds, bucket_of, split_from

DIGEST_BYTES: Final = 5
SEQ_BYTES: Final = 4
RECORD_BYTES: Final = DIGEST_BYTES + SEQ_BYTES
HEADER_BYTES: Final = 7
"""A bucket begins with its newest seq; a record has the last bytes of its own, since all seqs in a log are near."""
RECORDS_PER_BUCKET: Final = 16
WRAP: Final = 1 << (8 * SEQ_BYTES)


def digest_of(client_id: str) -> bytes:
    """Give a few bytes that tell an id from most others."""
    return blake2b(client_id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def value_of(digest: bytes) -> int:
    """Give the number that decides on the bucket of a digest."""
    return int.from_bytes(digest, "little")


def candidates(digests: Mapping[str, bytes], known: KnownIds) -> dict[str, list[int]]:
    """Give the seqs of the samples that may have each of these ids, by their digests; leave out those without one."""
    found: dict[str, list[int]] = {}
    for name, digest in digests.items():
        bucket = known.buckets[bucket_of(value_of(digest), known.n_buckets)] if known.n_buckets else b""
        place = bucket.find(digest, HEADER_BYTES)
        while place >= 0:
            if (place - HEADER_BYTES) % RECORD_BYTES == 0:
                found.setdefault(name, []).append(seq_at(bucket, place))
            place = bucket.find(digest, place + 1)
    return found


def seq_at(bucket: bytes, place: int) -> int:
    """Give the seq of the record at a place."""
    newest = int.from_bytes(bucket[:HEADER_BYTES], "little")
    low = int.from_bytes(bucket[place + DIGEST_BYTES : place + RECORD_BYTES], "little")
    return newest - (newest - low) % WRAP


class Growth:
    """What is to be written into the index for the ids of some entries.

    n_samples is how many samples the log has at most, counted from the oldest seq that matters.
    """

    def __init__(self, entries: Iterable[Entry], oldest_seq: int, n_samples: int) -> None:
        self._oldest_seq = oldest_seq
        self._named = [(digest_of(name), seq) for entry in entries for name, seq in entry.named_samples()]
        self._most_buckets = -(-n_samples // RECORDS_PER_BUCKET)
        self._values = [value_of(digest) for digest, _ in self._named]

    def _wanted(self, n_buckets: int) -> int:
        """Give how many buckets there will be: they grow with the ids, also if these are the first of a long log."""
        grown = n_buckets + 2 * -(-len(self._named) // RECORDS_PER_BUCKET)
        return max(n_buckets, min(grown, self._most_buckets))

    def needed(self, n_buckets: int) -> list[int]:
        """Give those of the present buckets that get ids, or are split."""
        if not n_buckets:
            return []
        found = {bucket_of(value, n_buckets) for value in self._values}
        for new in range(n_buckets, self._wanted(n_buckets)):
            number = new
            while number >= n_buckets:
                number = split_from(number)
            found.add(number)
        return sorted(found)

    def buckets(self, n_buckets: int, present: Mapping[int, bytes]) -> dict[int, bytes]:
        """Give the new content of the buckets that change; present has those that are needed."""
        if not self._named:
            return {}
        bodies, wanted = dict(present), self._wanted(n_buckets)
        for number in range(n_buckets, wanted):
            if number == 0:
                bodies[0] = b""
            else:
                source = split_from(number)
                bodies[source], bodies[number] = split(bodies[source], number)
        added = defaultdict[int, list[tuple[bytes, int]]](list)
        for value, one in zip(self._values, self._named, strict=True):
            added[bucket_of(value, wanted)].append(one)
        bodies |= {number: extended(bodies[number], named, self._oldest_seq) for number, named in added.items()}
        return {number: body for number, body in bodies.items() if body != present.get(number)}


def split(body: bytes, number: int) -> tuple[bytes, bytes]:
    """Divide the records of a bucket between it and a new one, whose number is the last."""
    parts: tuple[list[bytes], list[bytes]] = [body[:HEADER_BYTES]], [body[:HEADER_BYTES]]
    for place in range(HEADER_BYTES, len(body), RECORD_BYTES):
        record = body[place : place + RECORD_BYTES]
        moves = bucket_of(value_of(record[:DIGEST_BYTES]), number + 1) == number
        parts[moves].append(record)
    kept, moved = map(b"".join, parts)
    return kept, moved


def extended(body: bytes, named: Iterable[tuple[bytes, int]], oldest_seq: int) -> bytes:
    """Add records, in rising order of their seqs, and drop those before the oldest seq."""
    first = HEADER_BYTES
    while first < len(body) and seq_at(body, first) < oldest_seq:
        first += RECORD_BYTES
    records, newest = [], 0
    for digest, seq in named:
        records.append(digest + (seq % WRAP).to_bytes(SEQ_BYTES, "little"))
        newest = seq
    return newest.to_bytes(HEADER_BYTES, "little") + body[first:] + b"".join(records)
