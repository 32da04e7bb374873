"""Which names a reader of the metrics may know."""

from collections.abc import Callable
from typing import NamedTuple


class View(NamedTuple):
    """Tells whether the name of a stream is shown, and whether the names of API keys are."""

    shows: Callable[[str], bool]
    shows_keys: bool


EVERYTHING = View(lambda _: True, shows_keys=True)
NO_NAMES = View(lambda _: False, shows_keys=False)
