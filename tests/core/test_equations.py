"""The equations of docs/method.md: each has a number, and core cites it where it is computed."""

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
METHOD = (ROOT / "docs/method.md").read_text()
BLOCK = re.compile(r"```math\n(.*?)\n```", re.DOTALL)
TAG = re.compile(r"\\tag\{(\d+)\}")
CITATION = re.compile(r"\beqs?\. ((?:\(\d+\)(?:, | and )?)*)")


def tags(page: str) -> list[list[int]]:
    """The numbers of each displayed equation of a page, which should be one each."""
    return [[int(number) for number in TAG.findall(block)] for block in BLOCK.findall(page)]


def cited(texts: Iterable[str]) -> set[int]:
    """The numbers that texts cite, as eq. (1), eqs. (1), (2) and (3)."""
    lists = [found for text in texts for found in CITATION.findall(" ".join(text.split()))]
    return {int(number) for found in lists for number in re.findall(r"\d+", found)}


def unnumbered(texts: Iterable[str]) -> list[str]:
    """Citations by another name than a number."""
    found = [
        match for text in texts for match in re.finditer(r"\bITAN eq|\beqs?\. (?!\(\d).{9}", " ".join(text.split()))
    ]
    return [match.group() for match in found]


def sources(*folders: str) -> list[str]:
    """The text of all modules under these folders but this one."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path.read_text() for path in paths if path != Path(__file__)]


def test_each_equation_has_the_next_number():
    assert tags(METHOD) == [[number] for number in range(1, len(tags(METHOD)) + 1)]


def test_each_equation_is_cited_by_core_and_each_citation_leads_to_one():
    numbers = {number for found in tags(METHOD) for number in found}
    assert cited(sources("core")) == numbers
    assert cited([METHOD, *sources("app", "bench", "tests")]) <= numbers
    assert not unnumbered(sources("bench", "core"))


def test_the_checks_can_fail():
    page = METHOD + "\n```math\na = b\n```\n"
    assert tags(page)[-1] == []
    assert cited(["by eq. (7), and eqs. (8),\n    (9) and (12). Not (3)"]) == {7, 8, 9, 12}
    last = len(tags(METHOD))
    without = [re.sub(rf"eqs?\. \({last}\)", "", text) for text in sources("core")]
    assert cited(without) == set(range(1, last))
    assert last + 1 in cited([*sources("core"), f"eq. ({last + 1})"])
    assert unnumbered(["as ITAN eq. mixture has it", "see eq. moment of the page"])
