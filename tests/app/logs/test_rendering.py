"""Lines that nobody can forge."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.logs.rendering import render_console, render_json

# half surrogate pairs too: file names and headers that are not UTF-8 end as such
TEXTS = st.text(st.characters(codec=None, categories=None))
VALUES = TEXTS | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.none() | st.booleans()


def fields(**given: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00.000+00:00", "level": "info", "event": "request"} | given


@given(event=TEXTS, value=VALUES)
def test_json_is_one_line_of_ascii_that_says_the_same(event: str, value: object) -> None:
    given = fields(event=event, value=value)
    line = render_json(None, "info", dict(given))
    assert line.isascii()
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line) == given


@given(event=TEXTS, value=VALUES)
def test_the_console_shows_one_printable_line(event: str, value: object) -> None:
    line = render_console(None, "info", fields(event=event, value=value)).decode()
    assert line.isprintable()


@pytest.mark.parametrize("text", ["a b", 'a"b', "a=b", "", "a\nb", "\x1b[31m", "\x9b31m", "\u2028"])
def test_the_console_quotes_what_is_no_plain_word(text: str) -> None:
    line = render_console(None, "info", fields(stream=text)).decode()
    assert line.endswith(f" stream={json.dumps(text)}")


def test_what_json_does_not_know_is_shown_as_python_does() -> None:
    assert json.loads(render_json(None, "info", fields(value=2j)))["value"] == "2j"
    assert json.loads(render_json(None, "info", fields(value=2**80)))["value"] == 2**80
