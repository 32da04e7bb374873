"""`itan pull prometheus --check`: what the queries give now."""

from collections.abc import Iterator
from typing import cast

import pytest

from app.commands.pull import print_newest
from app.pull.run import Pull

Look = tuple[int, str, dict[str, float | None]]


class Looked:
    """A run whose queries give this."""

    names = ("cpu", "latency")

    def __init__(self, *found: Look) -> None:
        self._found = found

    def look(self) -> Iterator[Look]:
        return iter(self._found)


@pytest.mark.parametrize(
    ("found", "out", "silent"),
    [
        ([], "", ["cpu", "latency"]),
        ([(0, "a", {"cpu": 0.5, "latency": None})], "a cpu=0.5 latency=missing\n", ["latency"]),
        ([(0, "a", {"cpu": 0.0, "latency": 2.0})], "a cpu=0.0 latency=2.0\n", []),
    ],
)
def test_queries_that_give_nothing_are_named(
    capsys: pytest.CaptureFixture[str], found: list[Look], out: str, silent: list[str]
) -> None:
    print_newest(cast("Pull", Looked(*found)))
    said = capsys.readouterr()
    assert said.out.partition(" ")[2] == out or not found
    assert said.err.splitlines() == [
        f"itan pull: the query of {name} gives no number at the newest step" for name in silent
    ]
