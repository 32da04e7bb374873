"""With API keys the page signs in once, and does what the key may do."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.console import Console
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

KEYS = "all-may,looks-only:read,labels-too:read+label"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Give a service that asks for keys, with a stream to review."""
    folder = tmp_path_factory.mktemp("guarded")
    with ServiceProcess(f"sqlite:///{folder}/itan.db", folder, api_keys=KEYS) as service:
        with Client(service.url, key="all-may") as client:
            client.observe("s", clusters(500, odd_share=0.03))
        yield service


@pytest.fixture
def owner(guarded: ServiceProcess) -> Iterator[Client]:
    with Client(guarded.url, key="all-may") as client:
        yield client


def sign_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_a_wrong_key_is_refused_and_a_good_one_opens(guarded: ServiceProcess, visit: Visit, console: Console) -> None:
    console.expect("401")
    page = visit(address(guarded.url, "s"))
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in(page, "guessed")
    expect(page.get_by_role("alert")).to_contain_text("key")
    sign_in(page, "labels-too")
    StreamPage(page).settle()
    assert "labels-too" not in page.evaluate("document.cookie + JSON.stringify(localStorage)")


def test_a_label_given_after_signing_in_counts(guarded: ServiceProcess, owner: Client, visit: Visit) -> None:
    page = visit(address(guarded.url, "s"))
    sign_in(page, "labels-too")
    shown = StreamPage(page)
    shown.settle()
    shown.keyboard.press("a")
    expect(shown.effect).to_contain_text("anomalous")
    assert owner.get("s").costs.labels == 1
    shown.keyboard.press("u")
    expect(shown.effect).to_contain_text("undone")
    assert owner.get("s").costs.labels == 0


def test_without_the_scope_to_label_the_queue_only_shows(guarded: ServiceProcess, owner: Client, visit: Visit) -> None:
    page = visit(address(guarded.url, "s"))
    sign_in(page, "looks-only")
    shown = StreamPage(page)
    shown.settle()
    expect(shown.review).to_contain_text("can look, but not label")
    for name in ("Anomaly", "Normal", "Undo"):
        expect(shown.button(name)).to_be_disabled()
    expect(page.get_by_role("button", name="Select")).to_have_count(0)
    shown.chart.focus()
    shown.keyboard.press("Shift+ArrowLeft")
    shown.keyboard.press("a")
    shown.keyboard.press("j")
    expect(shown.sample.get_by_role("heading")).not_to_have_text("Sample")
    expect(shown.sample.get_by_role("button", name="Anomaly")).to_have_count(0)
    expect(page.get_by_role("region", name="Label a stretch")).to_have_count(0)
    assert owner.get("s").costs.labels == 0


def test_the_event_stream_follows_by_the_session(guarded: ServiceProcess, owner: Client, visit: Visit) -> None:
    page = visit(address(guarded.url, "s"))
    sign_in(page, "looks-only")
    shown = StreamPage(page)
    shown.settle()
    seq = owner.observe("s", clusters(10, seed=1)).seq
    assert seq is not None
    expect(shown.readout).to_contain_text(f"Sample {seq[-1]}")


def test_a_session_holds_over_a_reload_and_ends_by_signing_out(
    guarded: ServiceProcess, visit: Visit, console: Console
) -> None:
    console.expect("401")
    page = visit(address(guarded.url, "s"))
    sign_in(page, "looks-only")
    StreamPage(page).settle()
    page.reload()
    StreamPage(page).settle()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
