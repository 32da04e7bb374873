"""Pulls step by step: what was missed in large windows, then each step when it is due."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Final

import httpx2

from app.counts import counted
from app.pull.config import PullConfig
from app.pull.destination import MOST_RECORDS, Destination
from app.pull.errors import Permanent, Stopped, TooMuch, Unanswerable, Unfit
from app.pull.patience import Patience
from app.pull.places import Places
from app.pull.prometheus import Prometheus
from app.pull.questions import Questions
from app.pull.rows import Rows
from app.pull.steps import at_or_before, moment
from app.pull.warning import WarnOnce
from app.pull.windows import Windows
from itan_client import Client

LATEST_SECONDS: Final = 10.0
"""A run is late by some of these seconds, always the same, so that several do not ask at the same moment."""
LOT: Final = Random()  # noqa: S311 - nothing secret is drawn

logger = logging.getLogger(__name__)


class Pull:
    """One run. `done` is the last step that is done.

    What is wrong with the queries at first ends the run; later it costs only the values that are concerned.
    """

    def __init__(
        self,
        config: PullConfig,
        questions: Questions,
        destination: Destination,
        patience: Patience,
        clock: Callable[[], float],
        lot: Random,
        warn: WarnOnce,
    ) -> None:
        self._config, self._questions, self._destination = config, questions, destination
        self._patience, self._clock, self._warn = patience, clock, warn
        self._places = Places(config, destination, patience, warn)
        self._late_seconds = lot.uniform(0.0, min(LATEST_SECONDS, config.step))
        self._windows = Windows(len(config.names))
        self._has_numbers = True
        self._n_not_finite = 0
        self.done = 0

    @classmethod
    @contextmanager
    def connected(
        cls,
        config: PullConfig,
        url: str,
        client: Client,
        wait: Callable[[float], bool],
        limit_seconds: float | None = None,
        *,
        clock: Callable[[], float] = time.time,
        lot: Random = LOT,
        transport: httpx2.BaseTransport | None = None,
    ) -> Iterator["Pull"]:
        """Connect the parts of a run, from the Prometheus at an address to a service. Raises Permanent."""
        warn = WarnOnce()
        patience = Patience(wait, lot, limit_seconds)
        with Prometheus(url, config.prometheus, config.timeout, warn, transport) as prometheus:
            questions = Questions(config, prometheus, patience)
            yield cls(config, questions, Destination(client, config, warn), patience, clock, lot, warn)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self._config.names

    def look(self) -> Iterator[tuple[int, str, dict[str, float | None]]]:
        """Give what the queries give at the newest step that is due. Raises Permanent or Stopped."""
        for sample in self._questions.at_first(self._newest_due()).samples():
            yield sample.time, sample.stream, dict(zip(self._config.names, sample.values, strict=True))

    def summary(self) -> str:
        """Say what was sent so far."""
        sent = self._destination.sent
        parts = [f"{counted(sent.taken, 'sample')} sent, {sent.flagged} of them flagged"]
        parts += [f"{sent.known} known with other values"] * bool(sent.known)
        parts += [f"{n} refused ({code})" for code, n in sorted(sent.refused.items())]
        parts += [f"{counted(self._n_not_finite, 'value')} not finite"] * bool(self._n_not_finite)
        return "; ".join([*parts, f"done until {moment(self.done)}" if self.done else "nothing done"])

    def run(self, *, once: bool) -> None:
        """Pull until somebody asks for an end; or with `once` until the present."""
        try:
            self.done = self._find_place()
            logger.info("pulling all steps after %s", moment(self.done))
            while not (once and self._is_present()):
                self._patience.wait(self._seconds_to_next())
                if not self._is_present():
                    self._go_on()
        except Stopped:
            logger.info("asked to end; done until %s", moment(self.done))

    def _find_place(self) -> int:
        """Find the step after which to begin: where the stream is that has come least far.

        New streams do not make a run begin from afar, unless they had values at that place already: others came after
        it, and miss nothing.
        """
        newest, step = self._newest_due(), self._config.step
        earliest = newest - max(at_or_before(self._config.backfill, step), step)
        rows = self._questions.at_first(newest)
        self._note(rows, newest)
        try:
            places = {stream: self._places.find(stream) for stream in rows.streams}
        except Unfit as error:
            raise Permanent(str(error)) from None
        known = [place for place in places.values() if place is not None]
        if not known:
            return earliest
        place = max(earliest, min(newest, at_or_before(min(known), step)))
        new = {stream for stream, place in places.items() if place is None}
        if new and place > earliest and not new.isdisjoint(self._questions.at(place).streams):
            return earliest
        return place

    def _newest_due(self) -> int:
        """Give the last step whose delay is over."""
        return at_or_before(self._clock() - self._config.delay, self._config.step)

    def _is_present(self) -> bool:
        return self.done >= self._newest_due()

    def _seconds_to_next(self) -> float:
        if not self._is_present():
            return 0.0
        next_step = self.done + self._config.step
        return max(0.0, next_step + self._config.delay + self._late_seconds - self._clock())

    def _go_on(self) -> None:
        """Do steps that are due; if they are too many, let the next try be for fewer."""
        step = self._config.step
        n_steps = min((self._newest_due() - self.done) // step, self._windows.n_steps)
        first, last = self.done + step, self.done + n_steps * step
        try:
            rows = self._questions.at(last) if n_steps == 1 else self._questions.over(first, last)
        except Unanswerable:
            self._windows.note_unanswerable(n_steps)
        except TooMuch as error:
            self._windows.note_too_much(n_steps)
            self._patience.pause_after(error)
        else:
            self._send(rows)
            self.done = last
            self._note(rows, last)
            self._windows.note_done()
            logger.log(logging.INFO if n_steps > 1 else logging.DEBUG, "done until %s", moment(last))

    def _note(self, rows: Rows, last: int) -> None:
        self._windows.note_streams(len(rows.streams))
        has_numbers = bool(rows.streams)
        if has_numbers != self._has_numbers:
            self._has_numbers = has_numbers
            logger.warning("the queries give %s at %s", "numbers again" if has_numbers else "no numbers", moment(last))

    def _send(self, rows: Rows) -> None:
        for fault in rows.faults:
            self._warn(fault)
        self._n_not_finite += rows.n_not_finite
        samples = self._places.newer(rows.samples())
        for start in range(0, len(samples), MOST_RECORDS):
            batch = samples[start : start + MOST_RECORDS]
            self._patience.until_done(partial(self._destination.send, batch))
            self._places.move(batch)
