"""The page that a replay leaves behind, opened from the disk."""

import csv
import random
from pathlib import Path

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from app.cli import app
from tests.browser.conftest import Visit
from tests.browser.test_accessible import PHONE, axe, grave_faults
from tests.integration.process import ServiceProcess

__all__ = ["axe"]

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "$x^{$ & 价格 {{ 7*7 }}"]


@pytest.fixture(scope="module")
def page_file(service: ServiceProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replay a file whose columns are called like an attack."""
    folder, lot = tmp_path_factory.mktemp("evaluation"), random.Random(5)
    with (folder / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["when", *HOSTILE, "truth"])
        for t in range(400):
            odd = lot.random() < 0.05
            writer.writerow([1_700_000_000 + 60 * t, *(lot.gauss(9.0 * odd, 1.0) for _ in HOSTILE), int(odd)])
    words = [folder / "t.csv", "-s", "evaluated", "--url", service.url, "--label-column", "truth", "--compare"]
    words += ["--timestamp-column", "when", "--report", folder / "page.html"]
    done = CliRunner().invoke(app, ["replay", *map(str, words)])
    assert done.exit_code == 0, done.output
    return folder / "page.html"


@pytest.mark.parametrize("look", [{}, PHONE], ids=["desk", "phone"])
def test_it_shows_everything_and_loads_nothing(
    page_file: Path, visit: Visit, axe: str, look: dict[str, object]
) -> None:
    page = visit("about:blank", **look)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    assert [url for url in asked if not url.startswith("data:")] == [page_file.as_uri()]
    for picture in page.locator("img").all():
        assert picture.evaluate("image => image.complete && image.naturalWidth > 100")
    assert page.locator("img").count() == 2
    columns = page.get_by_role("region", name="Columns")
    for name in HOSTILE:
        expect(columns.get_by_role("rowheader", name=name, exact=True)).to_be_visible()
    results = page.get_by_role("region", name="Results")
    expect(results.get_by_role("rowheader", name="rolling z-score")).to_be_visible()
    expect(page.get_by_role("region", name="Incidents").get_by_role("row")).not_to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert grave_faults(page, axe) == []
