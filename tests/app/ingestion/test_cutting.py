"""Streams of bytes are cut into the same records wherever the chunks end."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingestion.cutting import LONGEST, BadInput, cutter_for

TEXTS = st.text(max_size=8)
RECORDS = st.lists(st.dictionaries(TEXTS, st.none() | st.integers() | st.floats(allow_nan=False) | TEXTS), max_size=6)


def cut(text: bytes, sizes: list[int]) -> list[tuple[int, bytes]]:
    """Feed a text in chunks of these sizes, then the rest."""
    cutter, found = cutter_for(text), []
    for size in sizes:
        found += cutter.feed(text[:size])
        text = text[size:]
    found += cutter.feed(text)
    return [(record.line, record.text) for record in [*found, *cutter.finish()]]


@given(RECORDS, st.booleans(), st.sampled_from([None, 1]), st.lists(st.integers(1, 20), max_size=30))
def test_an_array_gives_its_elements(
    records: list[object], is_ascii: bool, indent: int | None, sizes: list[int]
) -> None:
    text = json.dumps(records, ensure_ascii=is_ascii, indent=indent).encode("utf-8", "surrogatepass")
    assert [json.loads(record) for _, record in cut(text, sizes)] == records


@given(RECORDS, st.lists(st.integers(1, 20), max_size=30))
def test_lines_give_themselves_with_their_numbers(records: list[object], sizes: list[int]) -> None:
    lines = [json.dumps(record).encode() for record in records]
    assert cut(b"\n\n".join(lines), sizes) == [(2 * place + 1, line) for place, line in enumerate(lines)]


@given(st.lists(st.integers(1, 20), max_size=30))
def test_records_over_several_lines_know_where_they_begin(sizes: list[int]) -> None:
    text = b'\xef\xbb\xbf{\n "a": 1}\n\n{"b":\r\n "\xe2\x80\xa8"}\n'
    assert cut(text, sizes) == [(1, b'{  "a": 1}'), (4, b'{"b":   "\xe2\x80\xa8"}')]


def test_what_is_no_json_is_a_line_for_the_service_to_refuse() -> None:
    assert cut(b'{"a": 1}\nnonsense\n[1]\n', []) == [(1, b'{"a": 1}'), (2, b"nonsense"), (3, b"[1]")]


@pytest.mark.parametrize("end", [b"[1, 2]", b'[{"a": 1}, nonsense]', b'[{"a": 1}, {"b":]', b'[\n{"a": 1},\n"x"]'])
def test_an_array_of_other_things_is_refused_by_line(end: bytes) -> None:
    with pytest.raises(BadInput, match=r"line [13]: no JSON record: "):
        cut(end, [])


@pytest.mark.parametrize("start", [b"x" * (LONGEST + 1), b'[{"a": "' + b"x" * LONGEST])
def test_what_never_ends_is_refused_and_not_kept(start: bytes) -> None:
    cutter = cutter_for(start)
    cutter.feed(start)
    with pytest.raises(BadInput, match="line 1"):
        cutter.feed(b"x")


def test_no_utf8_is_refused() -> None:
    with pytest.raises(BadInput, match="no UTF-8"):
        cut(b'[{"a": "\xff"}]', [])
