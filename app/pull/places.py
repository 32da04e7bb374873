"""How far each stream has come."""

import logging
from collections.abc import Sequence

from app.pull.config import PullConfig
from app.pull.destination import Destination
from app.pull.errors import Unfit
from app.pull.patience import Patience
from app.pull.rows import Sample
from app.pull.warning import WarnOnce

logger = logging.getLogger(__name__)


class Places:
    """The time of the newest sample of each stream that gets samples; the service is asked once for each.

    A stream that cannot take the samples has none. Those that are gone are forgotten when there is no room left.
    """

    def __init__(self, config: PullConfig, destination: Destination, patience: Patience, warn: WarnOnce) -> None:
        self._most, self._destination, self._patience, self._warn = config.max_streams, destination, patience, warn
        self._places: dict[str, float] = {}
        self._unfit: set[str] = set()

    def find(self, stream: str) -> float | None:
        """Give the place of a stream; None if it has no sample yet. Raises Unfit."""
        place = self._patience.until_done(lambda: self._destination.place_of(stream))
        self._places[stream] = float("-inf") if place is None else place
        return place

    def newer(self, samples: Sequence[Sample]) -> list[Sample]:
        """Give the samples that come after the places of their streams."""
        streams = dict.fromkeys(sample.stream for sample in samples)
        self._make_room(streams)
        for stream in streams:
            if stream not in self._places and stream not in self._unfit:
                self._admit(stream)
        return [one for one in samples if one.stream in self._places and one.time > self._places[one.stream]]

    def move(self, sent: Sequence[Sample]) -> None:
        """Note samples that are sent."""
        for sample in sent:
            self._places[sample.stream] = sample.time

    def _make_room(self, streams: dict[str, None]) -> None:
        if len(self._places.keys() | self._unfit | streams.keys()) > self._most:
            self._places = {stream: place for stream, place in self._places.items() if stream in streams}
            self._unfit &= streams.keys()

    def _admit(self, stream: str) -> None:
        if len(self._places) >= self._most:
            self._warn(f"stream {stream!r} is left out: max_streams is {self._most}")
            return
        try:
            self.find(stream)
        except Unfit as error:
            self._unfit.add(stream)
            self._warn(f"{error}; it is left out")
        else:
            logger.info("stream %s", stream)
