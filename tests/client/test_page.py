"""The code of docs/client.md, run against a service."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.process import ServiceProcess

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ServiceProcess("memory://", tmp_path_factory.mktemp("service")) as running:
        yield running.url


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_block_runs(url: str, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ADDRESS in block
    exec(block.replace(ADDRESS, url), {"__name__": "page"})
