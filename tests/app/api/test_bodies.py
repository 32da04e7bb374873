import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.bodies.json_tree import read_tree
from app.api.bodies.labels import read_labels
from app.api.bodies.reading import InvalidJson, decode, invalid_body, refuse_repeated_names, value_at
from app.api.bodies.samples import read_batch
from app.api.schemas.samples import ObserveBody

JSON, NDJSON = "application/json", "application/x-ndjson"
NAMES = st.text(st.sampled_from('ab:"\\\u00e9 ,{}[]'), min_size=1, max_size=4)


def read(body: bytes, media: str = JSON):
    return asyncio.run(read_batch(media, body, 100))


def encoded(name: str, *, escaped: bool) -> str:
    """Write a name, if wanted with its first character escaped."""
    return f'"\\u{ord(name[0]):04x}{json.dumps(name[1:])[1:]}' if escaped else json.dumps(name, ensure_ascii=False)


@given(st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=5), st.lists(NAMES, min_size=1, max_size=1))
def test_a_repeated_name_is_refused_and_no_other(pairs, ids):
    row = "{" + ", ".join(f"{encoded(name, escaped=escaped)}: 1" for name, escaped in pairs) + "}"
    body = f'{{"samples": [{row}], "ids": [{json.dumps(ids[0])}]}}'.encode()
    names = [name for name, _ in pairs]
    if len(set(names)) == len(names):
        batch = read(body)
        assert batch.samples.matrix(batch.config("s")).shape == (
            1,
            len(names),
        )
    else:
        with pytest.raises(InvalidJson, match="given once"):
            read(body)


@pytest.mark.parametrize("media", [JSON, NDJSON])
def test_the_second_of_two_rows_is_looked_at_too(media):
    rows = '{"a": 1, "b": 2}', '{"a": 1, "a": 2, "b": 3}'
    body = f'{{"samples": [{", ".join(rows)}]}}' if media == JSON else "\n".join(rows)
    with pytest.raises(InvalidJson):
        read(body.encode(), media)


def test_colons_in_texts_are_not_taken_for_names():
    body = b'{"samples": [[1], [2]], "ids": ["10:20:30", "::"], "timestamps": ["2026-01-01T00:00:00+01:00", 1.0]}'
    assert read(body).ids == ("10:20:30", "::")
    with pytest.raises(InvalidJson):
        read(body.replace(b'{"samples"', b'{"ids": ["a"], "samples"'))


def test_an_escaped_colon_does_not_hide_a_repeated_name():
    body = b'{"samples": [[1]], "ids": ["\\u003a"], "ids": ["\\u003a"]}'
    with pytest.raises(InvalidJson):
        read(body)
    with pytest.raises(InvalidJson):
        asyncio.run(read_labels(b'{"labels": [{"id": "\\u003a", "anomaly": true, "anomaly": false}]}', 10))


def test_arrays_are_read_once(monkeypatch):
    def read_again(*_: object, **__: object) -> None:
        raise AssertionError("the body was read again")

    monkeypatch.setattr("app.api.bodies.json_tree.json.loads", read_again)
    read(b'{"samples": [[1, 2], [3, null]], "ids": ["a:1", "b"]}')
    read(b'{"samples": [{"a:b": 1}, {"a:b": 2}]}')
    read(b'[1, 2]\n{"sample": [1, 2], "id": "a:b"}', NDJSON)
    refuse_repeated_names(b'{"a": 1}', 1)


def test_the_refused_value_is_found_by_its_path():
    tree = read_tree(b'{"samples": [[1], ["x"]], "a": {"b": [true]}, "long": 1e999}')
    assert value_at(tree, ".samples[1][0]") == "x"
    assert value_at(tree, ".a.b[0]") is True
    assert value_at(tree, ".nothing") is None
    assert value_at(tree, ".samples[9]") is None
    assert repr(value_at(tree, ".long")) == "1e999"


def test_a_message_of_any_form_becomes_a_problem():
    assert invalid_body("odd", b"1", "").field == "body"
    assert invalid_body("Expected `int` - at `$.a[0]`", b'{"a": [true]}', "x").field == "x.a[0]"


def test_deep_nesting_is_no_crash():
    for body in (b"[" * 100_000, b'{"a":' * 100_000):
        with pytest.raises(ValueError, match="body"):
            decode(msgspec.json.Decoder(), body)
        with pytest.raises(ValueError):  # noqa: PT011 any refusal will do
            decode(msgspec.json.Decoder(ObserveBody), body)
