"""Labels given on the page: what they do to the threshold and the counts, and how they are taken back."""

import re
import time

import pytest
from playwright.sync_api import Route, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.console import Console
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

ARROW = " → "
LABELS = re.compile(r"/feedback\?|/incidents/.+/label")
COUNTED_NOTHING = {"labels": 0, "true_alarms": 0, "false_alarms": 0, "misses": 0, "true_passes": 0}


@pytest.fixture
def shown(service: ServiceProcess, client: Client, visit: Visit, request: pytest.FixtureRequest) -> StreamPage:
    """Give the page of a stream that has flagged some samples."""
    client.observe(stream_of(request), clusters(600, odd_share=0.03))
    page = StreamPage(visit(address(service.url, stream_of(request))))
    page.settle()
    return page


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    return stream_of(request)


def stream_of(request: pytest.FixtureRequest) -> str:
    """Each test has a stream of its own."""
    return f"review.{request.node.name}"[:128]


def threshold_of(client: Client, stream: str) -> str:
    """The threshold as the page writes it."""
    return f"{client.get(stream).threshold:.2f}"


def test_labels_move_the_threshold_and_the_counts_at_once(shown: StreamPage, client: Client, stream: str) -> None:
    named = list[str]()
    while ARROW not in shown.effect.inner_text().partition("false alarms")[0]:
        before = client.get(stream)
        named.append(subject_of(shown))
        shown.button("Normal").click()
        expect(shown.effect).to_contain_text(told(named[-1], "normal"))
        assert len(named) < 40
    after = client.get(stream)
    expect(shown.effect.locator(".threshold-moved")).to_have_text(f"{before.threshold:.2f}{ARROW}{after.threshold:.2f}")
    assert after.costs.labels >= len(named)
    assert after.costs.false_alarms > 0
    expect(shown.tile("threshold")).to_have_text(threshold_of(client, stream))
    expect(shown.tile("false alarms")).to_have_text(str(int(after.costs.false_alarms)))
    expect(shown.effect.locator(".false-alarms")).to_have_text(re.compile(rf"\b{int(after.costs.false_alarms)}$"))
    assert subject_of(shown) not in named


def test_undo_takes_the_labels_back_one_by_one(shown: StreamPage, client: Client, stream: str) -> None:
    start, waiting = client.get(stream), shown.tile("to review").inner_text()
    named = []
    for button, label in (("Anomaly", "anomalous"), ("Normal", "normal"), ("Normal", "normal")):
        named.append(subject_of(shown))
        shown.button(button).click()
        expect(shown.effect).to_contain_text(told(named[-1], label))
    moved = client.get(stream)
    assert moved.costs.labels >= 3
    expect(shown.tile("to review")).not_to_have_text(waiting)
    for name in reversed(named):
        shown.button("Undo").click()
        expect(shown.effect).to_contain_text(told(name, "undone"))
        expect(shown.subject).to_have_text(name)
    assert counts_of(client, stream) == COUNTED_NOTHING
    # without labels it is a quantile of recent scores, which is taken anew whenever labels change
    assert abs(client.get(stream).threshold - start.threshold) < abs(moved.threshold - start.threshold) / 5
    expect(shown.tile("threshold")).to_have_text(threshold_of(client, stream))
    expect(shown.tile("to review")).to_have_text(waiting)
    expect(shown.button("Undo")).to_be_disabled()


def test_the_first_incident_is_open_with_its_values(shown: StreamPage, client: Client, stream: str) -> None:
    waiting = client.review(stream).incidents
    assert len(waiting) > 2
    first = waiting[0]
    expect(shown.tile("to review")).to_have_text(str(len(waiting)))
    expect(shown.subject).to_have_text(f"Incident {first.incident}")
    cause = rf"{first.features[0].name} was \S+, expected about \S+ at the time"
    expect(shown.current).to_contain_text(re.compile(cause))
    expect(shown.sample.get_by_role("heading")).to_have_text(f"Sample {first.peak_seq}")
    expect(shown.chart).to_have_attribute("data-to", "600")
    shown.page.goto(f"{shown.page.url}?incident={waiting[2].incident}")
    expect(shown.subject).to_have_text(f"Incident {waiting[2].incident}")
    expect(shown.sample.get_by_role("heading")).to_have_text(f"Sample {waiting[2].incident}")


def test_a_sample_of_an_incident_is_labelled_by_itself_and_the_incident_with_it(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    client.observe("single", [*clusters(400, odd_share=0), *clusters(6, seed=5, odd_share=1)])
    shown = StreamPage(visit(address(service.url, "single")))
    incident = client.review("single").incidents[0]
    expect(shown.subject).to_have_text(f"Incident {incident.incident}")
    shown.review.get_by_text("Its samples, one by one").click()
    samples = shown.review.locator(".samples li")
    expect(samples.first).to_contain_text(re.compile(r"^sample 4\d\d severity \d"))
    assert samples.count() > 1
    samples.last.get_by_role("button").click()
    seq = int(samples.last.get_by_role("button").inner_text().removeprefix("sample "))
    expect(shown.sample.get_by_role("heading")).to_have_text(f"Sample {seq}")
    shown.sample.get_by_role("button", name="Anomaly").click()
    expect(shown.effect).to_contain_text(f"Sample {seq}: anomalous")
    expect(shown.tile("to review")).to_have_text(str(len(client.review("single").incidents)))
    assert client.get("single").costs.labels == 1
    assert client.incident(incident.id).state == "confirmed"


def test_the_whole_review_goes_by_keyboard(service: ServiceProcess, client: Client, visit: Visit) -> None:
    stream = "0.first.of.the.list"
    client.observe(stream, clusters(600, odd_share=0.03))
    page = visit(service.url)
    link = page.get_by_role("region", name="List of streams").get_by_role("link", name=stream)
    expect(link).to_be_visible()
    while link.evaluate("link => link !== document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    shown = StreamPage(page)
    shown.settle()
    first = subject_of(shown)
    shown.keyboard.press("j")
    second = subject_of(shown)
    assert second != first
    shown.keyboard.press("k")
    assert subject_of(shown) == first
    shown.keyboard.press("a")
    expect(shown.effect).to_contain_text(told(first, "anomalous"))
    shown.keyboard.press("n")
    expect(shown.effect).to_contain_text(told(second, "normal"))
    shown.keyboard.press("u")
    expect(shown.effect).to_contain_text(told(second, "undone"))
    costs = client.get(stream).costs
    assert costs.labels == costs.true_alarms + costs.misses > 0


def test_keys_pressed_while_a_label_is_under_way_are_for_what_is_shown_then(
    shown: StreamPage, client: Client, stream: str
) -> None:
    held = hold_labels(shown)
    named = press(shown, "ana")
    for many in (1, 2, 3):
        expect_held(shown, held, many)
        held[-1].continue_()
    expect(shown.effect).to_contain_text(told(named[-1], "anomalous"))
    states = {f"Incident {one.incident}": one.state for one in client.incidents(stream=stream)}
    assert [states[name] for name in named] == ["confirmed", "dismissed", "confirmed"]


def test_labels_that_are_not_taken_bring_their_incidents_back(
    shown: StreamPage, client: Client, stream: str, console: Console
) -> None:
    console.expect("503")
    held = hold_labels(shown)
    named = press(shown, "ana")
    expect_held(shown, held, 1)
    held[0].fulfill(status=503, json={"code": "store_unavailable", "detail": "The store is away."})
    expect(shown.review).to_contain_text("The label was not taken. The store is away.")
    assert subject_of(shown) == named[0]
    shown.page.unroute(LABELS)
    assert press(shown, "ana") == named
    expect(shown.effect).to_contain_text(told(named[-1], "anomalous"))
    assert len(held) == 1
    assert {one.state for one in client.incidents(stream=stream)} >= {"confirmed", "dismissed"}


def test_a_label_lost_in_an_outage_is_told_until_the_next_step(shown: StreamPage, console: Console) -> None:
    console.expect("net::ERR_")
    shown.page.route(LABELS, lambda route: route.abort())
    for key in "na":
        first = subject_of(shown)
        shown.keyboard.press(key)
        lost = shown.review.get_by_role("alert")
        expect(lost).to_have_text("The label was not taken. The service did not answer: label again.")
        expect(shown.subject).to_have_text(first)
        shown.keyboard.press("j")
        expect(lost).to_have_count(0)
    held = hold_labels(shown)
    shown.keyboard.press("n")
    expect_held(shown, held, 1)
    held[0].abort()
    expect(lost).to_be_visible()
    shown.keyboard.press("n")
    expect_held(shown, held, 2)
    expect(lost).to_have_count(0)


def hold_labels(shown: StreamPage) -> list[Route]:
    """Let no label through to the service; those that wait are in the list."""
    held = list[Route]()
    shown.page.route(LABELS, lambda route: held.append(route))
    return held


def expect_held(shown: StreamPage, held: list[Route], many: int) -> None:
    deadline = time.monotonic() + 20
    while len(held) < many:
        assert time.monotonic() < deadline
        shown.page.wait_for_timeout(20)
    assert len(held) == many


def press(shown: StreamPage, keys: str) -> list[str]:
    """Press keys for one incident after the other, and name them."""
    named = list[str]()
    for key in keys:
        named.append(subject_of(shown))
        shown.keyboard.press(key)
        expect(shown.subject).not_to_have_text(named[-1])
    return named


def test_keys_are_told_and_can_be_turned_off(shown: StreamPage, client: Client, stream: str) -> None:
    shown.keyboard.press("?")
    keys = shown.page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("label what is under review as an anomaly")
    shown.keyboard.press("a")
    keys.get_by_role("checkbox").press("Space")
    shown.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    shown.keyboard.press("a")
    shown.button("Normal").click()
    expect(shown.effect).to_contain_text("normal")
    labelled = [one.state for one in client.incidents(stream=stream) if one.state in ("confirmed", "dismissed")]
    assert labelled == ["dismissed"]


def test_a_label_given_elsewhere_takes_its_incident_out_of_the_queue(
    shown: StreamPage, client: Client, stream: str
) -> None:
    name, incident = subject_of(shown), client.review(stream).incidents[0]
    client.feedback(stream, [{"seq": incident.peak_seq, "anomaly": True}])
    expect(shown.tile("labels")).to_have_text("1")
    expect(shown.subject).not_to_have_text(name)


def counts_of(client: Client, stream: str) -> dict[str, float]:
    """How the decisions stand by the labels."""
    costs = client.get(stream).costs
    return {name: getattr(costs, name) for name in COUNTED_NOTHING}


def subject_of(shown: StreamPage) -> str:
    """What is under review."""
    return shown.subject.inner_text()


def told(name: str, label: str) -> re.Pattern[str]:
    """Match what is told of a label for an incident or a sample."""
    return re.compile(rf"{name}(, \d+ samples?)?: {label}")
