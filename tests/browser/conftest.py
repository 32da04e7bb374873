"""A browser, a service, and pages that complain about every error on their console."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from itan_client import Client
from tests.browser.console import Console
from tests.integration.process import ServiceProcess

UI = Path(__file__).parents[2] / "app" / "ui"
CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NO_REGISTRY = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENOTCACHED")

# so long only where something is wrong, or the machine is busy
PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)

Visit = Callable[..., Page]


# of the module, not the session: while Playwright runs, its event loop keeps asynchronous tests from having one
@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Give a service without keys; each test has a stream of its own there."""
    with ServiceProcess("memory://", tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[Client]:
    with Client(service.url) as running:
        yield running


@pytest.fixture
def console() -> Iterator[Console]:
    """What pages said on their consoles; at the end there may be no error that was not expected."""
    heard = Console()
    yield heard
    assert heard.unexpected() == []


@pytest.fixture
def visit(browser: Browser, console: Console) -> Iterator[Visit]:
    """Open a page at an address, in a context of its own; options are those of the context."""
    contexts: list[BrowserContext] = []

    def open_page(url: str, **options: object) -> Page:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}))
        contexts[-1].set_default_timeout(PATIENCE_MS)
        page = contexts[-1].new_page()
        console.listen(page)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def ui_with_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the page's source with the packages of its lock file."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    copy = tmp_path_factory.mktemp("ui") / "ui"
    shutil.copytree(UI, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    done = subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=copy, capture_output=True, text=True, env=quiet())
    if done.returncode and any(code in done.stderr for code in NO_REGISTRY):
        pytest.skip("npm reaches no registry")
    assert done.returncode == 0, done.stderr
    return copy


def quiet() -> dict[str, str]:
    """An environment in which npm asks and tells nothing more than it must."""
    return {**os.environ, "NO_UPDATE_NOTIFIER": "1", "CI": "1"}
