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
    seqs = list[int]()
    while ARROW not in shown.effect.inner_text().partition("false alarms")[0]:
        before = client.get(stream)
        seqs.append(seq_of(shown))
        shown.button("Normal").click()
        expect(shown.effect).to_contain_text(f"Sample {seqs[-1]}: normal")
        assert len(seqs) < 40
    after = client.get(stream)
    expect(shown.effect.locator(".threshold-moved")).to_have_text(f"{before.threshold:.2f}{ARROW}{after.threshold:.2f}")
    assert after.costs.labels == len(seqs)
    assert after.costs.false_alarms > 0
    expect(shown.tile("threshold")).to_have_text(threshold_of(client, stream))
    expect(shown.tile("false alarms")).to_have_text(str(int(after.costs.false_alarms)))
    expect(shown.effect.locator(".false-alarms")).to_have_text(re.compile(rf"\b{int(after.costs.false_alarms)}$"))
    assert seq_of(shown) not in seqs


def test_undo_takes_the_labels_back_one_by_one(shown: StreamPage, client: Client, stream: str) -> None:
    start = client.get(stream)
    seqs = []
    for button in ("Anomaly", "Normal", "Normal"):
        seqs.append(seq_of(shown))
        shown.button(button).click()
        expect(shown.effect).to_contain_text(f"Sample {seqs[-1]}: ")
    moved = client.get(stream)
    assert moved.costs.labels == 3
    for seq in reversed(seqs):
        shown.button("Undo").click()
        expect(shown.effect).to_contain_text(f"Sample {seq}: undone")
        expect(shown.current).to_contain_text(f"sample {seq:,}")
    assert counts_of(client, stream) == COUNTED_NOTHING
    # without labels it is a quantile of recent scores, which is taken anew whenever labels change
    assert abs(client.get(stream).threshold - start.threshold) < abs(moved.threshold - start.threshold) / 5
    expect(shown.tile("threshold")).to_have_text(threshold_of(client, stream))
    expect(shown.button("Undo")).to_be_disabled()


def test_the_whole_review_goes_by_keyboard(service: ServiceProcess, client: Client, visit: Visit) -> None:
    stream = "0.first.of.the.list"
    client.observe(stream, clusters(600, odd_share=0.03))
    page = visit(service.url)
    expect(page.get_by_role("link", name=stream)).to_be_visible()
    while page.get_by_role("link", name=stream).evaluate("link => link !== document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    shown = StreamPage(page)
    shown.settle()
    first = seq_of(shown)
    shown.keyboard.press("j")
    expect(shown.sample.get_by_role("heading")).not_to_have_text("Sample")
    second = seq_of(shown)
    assert second != first
    shown.keyboard.press("k")
    assert seq_of(shown) == first
    shown.keyboard.press("a")
    expect(shown.effect).to_contain_text(f"Sample {first}: anomalous")
    shown.keyboard.press("n")
    expect(shown.effect).to_contain_text(f"Sample {second}: normal")
    shown.keyboard.press("u")
    expect(shown.effect).to_contain_text(f"Sample {second}: undone")
    costs = client.get(stream).costs
    assert (costs.labels, costs.true_alarms + costs.misses) == (1, 1)


def test_keys_pressed_while_a_label_is_under_way_are_for_what_is_shown_then(
    shown: StreamPage, client: Client, stream: str
) -> None:
    held = hold_labels(shown)
    seqs = press(shown, "ana")
    for many in (1, 2, 3):
        expect_held(shown, held, many)
        held[-1].continue_()
    expect(shown.effect).to_contain_text(f"Sample {seqs[-1]}: anomalous")
    labels = [{"seq": seq, "anomaly": key == "a"} for seq, key in zip(seqs, "ana", strict=True)]
    assert client.feedback(stream, labels, dry_run=True).outcome == ["duplicate"] * 3
    assert client.get(stream).costs.labels == 3


def test_labels_that_are_not_taken_bring_their_samples_back(
    shown: StreamPage, client: Client, stream: str, console: Console
) -> None:
    console.expect("503")
    held = hold_labels(shown)
    seqs = press(shown, "ana")
    expect_held(shown, held, 1)
    held[0].fulfill(status=503, json={"code": "store_unavailable", "detail": "The store is away."})
    expect(shown.review).to_contain_text("The store is away.")
    assert seq_of(shown) == seqs[0]
    shown.page.unroute("**/feedback?*")
    assert press(shown, "ana") == seqs
    expect(shown.effect).to_contain_text(f"Sample {seqs[-1]}: anomalous")
    assert len(held) == 1
    assert client.get(stream).costs.labels == 3


def hold_labels(shown: StreamPage) -> list[Route]:
    """Let no label through to the service; those that wait are in the list."""
    held = list[Route]()
    shown.page.route("**/feedback?*", lambda route: held.append(route))
    return held


def expect_held(shown: StreamPage, held: list[Route], many: int) -> None:
    deadline = time.monotonic() + 20
    while len(held) < many:
        assert time.monotonic() < deadline
        shown.page.wait_for_timeout(20)
    assert len(held) == many


def press(shown: StreamPage, keys: str) -> list[int]:
    """Press keys for one sample after the other, and give the samples."""
    seqs = list[int]()
    for key in keys:
        seqs.append(seq_of(shown))
        shown.keyboard.press(key)
        expect(shown.current).not_to_contain_text(f"sample {seqs[-1]:,}")
    return seqs


def test_keys_are_told_and_can_be_turned_off(shown: StreamPage, client: Client, stream: str) -> None:
    shown.keyboard.press("?")
    keys = shown.page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("label the sample under review as an anomaly")
    shown.keyboard.press("a")
    keys.get_by_role("checkbox").press("Space")
    shown.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    shown.keyboard.press("a")
    shown.button("Normal").click()
    expect(shown.effect).to_contain_text("normal")
    assert client.get(stream).costs.labels == 1


def test_a_label_given_elsewhere_takes_its_sample_out_of_the_queue(
    shown: StreamPage, client: Client, stream: str
) -> None:
    seq = seq_of(shown)
    client.feedback(stream, [{"seq": seq, "anomaly": True}])
    expect(shown.tile("labels")).to_have_text("1")
    expect(shown.current).not_to_contain_text(f"sample {seq:,}")


def counts_of(client: Client, stream: str) -> dict[str, float]:
    """How the decisions stand by the labels."""
    costs = client.get(stream).costs
    return {name: getattr(costs, name) for name in COUNTED_NOTHING}


def seq_of(shown: StreamPage) -> int:
    """The sample under review."""
    return int(shown.current.get_by_role("button").inner_text().removeprefix("sample ").replace(",", ""))
