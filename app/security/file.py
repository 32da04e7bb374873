"""Keys in a file, one line of JSON each; the file is read again when it changes."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from app.security.errors import InvalidKeys
from app.security.grants import Grant, read_line

PLACE = "ITAN_API_KEYS_FILE"
Mark = tuple[int, int, int, int]


class KeyFile:
    """The file as it was last read. A file that cannot be read changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: Mark | None = None

    def read(self) -> tuple[Grant, ...]:
        """Read the keys; InvalidKeys if a line is wrong, or if there is none."""
        self._mark = self._present_mark()
        try:
            text = self._path.read_bytes()
        except OSError as error:
            raise InvalidKeys(PLACE, f"cannot be read: {error.strerror}") from None
        return read_grants(text)

    def has_changed(self) -> bool:
        """Tell whether the file was replaced or written to since it was read."""
        return self._present_mark() != self._mark

    def _present_mark(self) -> Mark | None:
        """Identify a file and its state, through symbolic links: Kubernetes swaps a link to a folder."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read_grants(text: bytes) -> tuple[Grant, ...]:
    """Read lines; ignore blank ones and those that begin with #."""
    grants = tuple(lines_read(text))
    if not grants:
        # an incomplete file must not lock everybody out
        raise InvalidKeys(PLACE, "holds no key")
    refuse_repeated(grants)
    return grants


def lines_read(text: bytes) -> Iterator[Grant]:
    """Read the lines one by one."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            yield read_line(line, f"{PLACE}, line {number}")


def refuse_repeated(grants: Sequence[Grant]) -> None:
    """Raise InvalidKeys for two lines with one name, which metrics and logs could not tell apart."""
    seen: set[int | str] = set()
    for grant in grants:
        if grant.name in seen:
            raise InvalidKeys(PLACE, f"two lines have the name {grant.name!r}")
        seen.add(grant.name)
