"""A stream with long names and many features, on a phone."""

import numpy as np
import pytest
from playwright.sync_api import expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.console import Console
from tests.browser.stream_page import StreamPage, address
from tests.browser.test_accessible import PHONE
from tests.integration.process import ServiceProcess

FINGER_PX = 44
LONGEST = 120
N_FEATURES = 40
STREAM = ("plant.7.line." * 20)[:LONGEST]
SMALL = """least => [...document.querySelectorAll('button, summary, select, a')]
    .map(it => [it.outerHTML.slice(0, 80), it.getBoundingClientRect()])
    .filter(([, {width, height}]) => height > 0 && Math.min(width, height) < least)
    .map(([html]) => html)"""
BEYOND = """() => [...document.querySelectorAll('.card *:not(svg *)')]
    .filter(it => it.closest('.scroll, .hidden, details:not([open])') === null)
    .filter(it => it.getBoundingClientRect().right > it.closest('.card').getBoundingClientRect().right)
    .map(it => it.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def stream(service: ServiceProcess) -> str:
    """Make a stream of many features, each with a name as long as one may be; its last sample is odd."""
    X = np.random.default_rng(0).normal(size=(200, N_FEATURES))
    X[-1] += 9
    names = [f"{number}_{'of_a_machine_' * 20}"[:LONGEST] for number in range(N_FEATURES)]
    with Client(service.url) as client:
        samples = [dict(zip(names, row, strict=True)) for row in X.tolist()]
        client.observe(STREAM, samples, ids=[f"{number}{'x' * LONGEST}"[:LONGEST] for number in range(len(X))])
    return STREAM


@pytest.fixture
def phone(service: ServiceProcess, stream: str, visit: Visit) -> StreamPage:
    shown = StreamPage(visit(address(service.url, stream), **PHONE))
    shown.settle()
    shown.current.get_by_role("button").first.click()
    expect(shown.reasons.first).to_be_visible()
    return shown


def test_long_names_stay_in_their_cards_and_many_features_are_folded(phone: StreamPage) -> None:
    assert phone.page.evaluate("document.documentElement.scrollWidth") == PHONE["viewport"]["width"]
    assert phone.page.evaluate(BEYOND) == []
    expect(phone.reasons.locator("visible=true")).to_have_count(5)
    label = phone.sample.get_by_role("button", name="Anomaly").bounding_box()
    reason = phone.reasons.first.bounding_box()
    assert label is not None
    assert reason is not None
    assert label["y"] < reason["y"]
    phone.sample.get_by_text("35 more features").click()
    expect(phone.reasons.locator("visible=true")).to_have_count(N_FEATURES)


def test_a_finger_can_hit_what_can_be_touched_and_no_keys_are_told(phone: StreamPage) -> None:
    assert phone.page.evaluate(SMALL, FINGER_PX) == []
    phone.page.get_by_role("link", name="All streams").click()
    expect(phone.page.get_by_role("link", name="incidents to review")).to_be_visible()
    assert phone.page.evaluate(SMALL, FINGER_PX) == []
    phone.page.go_back()
    expect(phone.button("Anomaly")).to_be_visible()
    expect(phone.page.locator("kbd").locator("visible=true")).to_have_count(0)
    expect(phone.page.get_by_role("button", name="Keys")).to_be_hidden()


def test_an_unknown_stream_offers_the_way_back(service: ServiceProcess, visit: Visit, console: Console) -> None:
    console.expect("404")
    page = visit(address(service.url, "nobody"))
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    page.get_by_role("link", name="list of all streams").click()
    expect(page.get_by_role("heading", name="Streams")).to_be_visible()
