"""Short descriptions of streams, to list thousands without reading them; what one holds is the caller's."""

from typing import NamedTuple


class SummaryRow(NamedTuple):
    """The summary of a stream by the holder of its lease; with only_if_missing it replaces none and needs no token."""

    stream: str
    body: bytes
    token: int = 0
    only_if_missing: bool = False
