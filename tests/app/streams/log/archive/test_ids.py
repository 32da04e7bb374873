"""A few bytes for each archived id tell which ids are new."""

from app.storage import Entry, Position
from app.streams.log.archive.ids import blocks_with, digests_in, ids_bytes, may_hold, read_ids

NAMES = [f"sensor-{i:06d}" for i in range(400)]


def entry(first: int, ids: list[str]) -> Entry:
    return Entry(Position(first + len(ids) - 1, 0), b"", first, tuple(ids))


def block(number: int) -> list[Entry]:
    return [entry(1 + 100 * number, NAMES[100 * number : 100 * number + 100])]


def test_ids_are_known_by_the_blocks_that_hold_them() -> None:
    written = [ids_bytes([block(0), block(1)]), b"", ids_bytes([block(2), block(3)])]
    files = list(map(read_ids, written))
    known = digests_in(files)
    assert known.nbytes == 4 * len(NAMES)
    assert sum(map(len, written)) < 4.1 * len(NAMES)
    assert may_hold(known, ["other", NAMES[250], NAMES[3]]) == [NAMES[250], NAMES[3]]
    assert may_hold(known, NAMES) == NAMES
    assert [blocks_with(file, [NAMES[250], NAMES[3]]) for file in files] == [[0], [], [0]]
    assert blocks_with(files[2], [NAMES[399]]) == [1]


def test_new_ids_are_hardly_ever_taken_for_known_ones() -> None:
    known = digests_in([read_ids(ids_bytes([block(0)]))])
    assert may_hold(known, [f"new-{i}" for i in range(20_000)]) == []


def test_without_ids_nothing_is_known() -> None:
    assert ids_bytes([[entry(1, ["", ""])], [Entry(Position(2, 1), b"labels")]]) == b""
    assert may_hold(digests_in([]), ["a"]) == may_hold(digests_in([read_ids(b"")]), ["a"]) == []
    assert may_hold(digests_in([read_ids(ids_bytes([block(0)]))]), []) == []


def test_an_id_given_twice_is_found_in_both_blocks() -> None:
    assert blocks_with(read_ids(ids_bytes([[entry(1, ["a", "b", ""])], [entry(4, ["a"])]])), ["a"]) == [0, 1]
