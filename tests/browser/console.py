"""What pages say on their consoles."""

from playwright.sync_api import ConsoleMessage, Page


class Console:
    """Collects errors and warnings of pages, and what they try to load from elsewhere."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._expected: list[str] = []

    def listen(self, page: Page) -> None:
        """Take note of all that goes wrong on a page from now on."""
        page.on("console", self._message)
        page.on("pageerror", lambda error: self.errors.append(error.stack or f"{error}"))
        page.on("dialog", lambda dialog: (self.errors.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def expect(self, *parts: str) -> None:
        """Allow errors that hold one of these texts: the test provokes them."""
        self._expected += parts

    def unexpected(self) -> list[str]:
        """Give the errors that no test has expected."""
        return [said for said in self.errors if not any(part in said for part in self._expected)]

    def _message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")
