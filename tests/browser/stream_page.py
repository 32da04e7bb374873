"""The page of one stream, as a visitor sees it."""

from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect


class StreamPage:
    """Finds the parts of the page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.keyboard = page.keyboard
        self.chart = page.get_by_role("group", name="Score of each sample")
        self.readout = page.locator(".card.score .readout")
        self.nodes = page.locator("svg.tree .node")
        self.review = page.locator(".card.review")
        self.current = self.review.locator(".current")
        self.subject = self.current.get_by_role("heading")
        self.effect = self.review.locator(".effect")
        self.sample = page.locator(".card.sample")
        self.reasons = self.sample.locator(".reasons li")
        self.banner = page.locator(".banner")

    def tile(self, name: str) -> Locator:
        """Find a number of the head by its name."""
        return self.page.locator(f'.tile[data-tile="{name}"] dd')

    def button(self, name: str) -> Locator:
        """Find a button of the review."""
        return self.review.get_by_role("button", name=name)

    def settle(self) -> None:
        """Wait until all parts are drawn."""
        expect(self.page.locator(".density-plot .area").first).to_be_visible()
        expect(self.nodes.first).to_be_visible()
        expect(self.current).to_be_visible()


def address(base: str, stream: str) -> str:
    """Give the address of a stream's page."""
    return f"{base}/#/streams/{quote(stream, safe='')}"
