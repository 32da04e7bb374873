"""The page that shows the interface is drawn from our own files, and tries requests with what the browser may do."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from app.main import ROUTES
from itan_client import Client
from tests.browser.conftest import Visit
from tests.integration.process import ServiceProcess


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess("memory://", tmp_path_factory.mktemp("docs"), api_keys="all-may") as running:
        yield running


def opened(page: Page, operation: str) -> Locator:
    """Unfold an operation, ready to try."""
    block = page.locator(f".opblock[id$='-{operation}']")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    return block


def test_it_shows_every_operation_and_asks_nobody_else(service: ServiceProcess, visit: Visit) -> None:
    page = visit("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{service.url}/docs")
    expect(page.locator(".opblock")).to_have_count(len(ROUTES))
    expect(page.get_by_text("Score samples, decide, learn")).to_be_visible()
    block = opened(page, "observe")
    block.get_by_placeholder("stream").fill("docs")
    block.get_by_role("button", name="Execute").click()
    expect(block.get_by_text('"samples_needed": 30')).to_be_visible()
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {urlsplit(service.url).netloc}
    assert f"{service.url}/observe?stream=docs&learn=true&explain=false" in asked


def test_a_signed_in_browser_may_try_changes(guarded: ServiceProcess, visit: Visit) -> None:
    page = visit(guarded.url)
    page.get_by_label("API key").fill("all-may")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("API key")).to_be_hidden()
    page.goto(f"{guarded.url}/docs")
    block = opened(page, "create_stream")
    block.get_by_placeholder("stream").fill("tried")
    block.get_by_role("button", name="Execute").click()
    expect(block.locator(".live-responses-table .response-col_status").filter(has_text="201")).to_be_visible()
    with Client(guarded.url, key="all-may") as owner:
        assert owner.get("tried").n_seen == 0
