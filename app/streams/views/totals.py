"""Sums over all streams, and over groups of them by the beginnings of their names."""

import re
from collections.abc import Iterable
from heapq import nsmallest
from itertools import takewhile
from typing import Final

import msgspec

from app.streams.log.recent import HOUR_SECONDS, HOURS
from app.streams.open.summary import Summary
from app.streams.views.orders import Order, value_of

MOST_GROUPS: Final = 200
_SEPARATOR = re.compile(r"[._:-]")


class Counts(msgspec.Struct, kw_only=True):
    """How many streams there are, and how they stand; of `unknown` ones only the names are known."""

    streams: int = 0
    unknown: int = 0
    unreadable: int = 0
    warming_up: int = 0
    silent: int = 0
    open_incidents: int = 0
    flagged_lately: int = 0
    to_review: int = 0

    def take(self, stream: Summary, flagged: int, *, is_silent: bool) -> None:
        """Count a stream."""
        self.streams += 1
        self.unknown += not stream.is_told
        self.unreadable += not stream.readable
        self.warming_up += stream.ready is False
        self.silent += is_silent
        self.open_incidents += stream.incident is not None
        self.flagged_lately += flagged
        self.to_review += stream.to_review or 0

    def add(self, other: "Counts") -> None:
        """Add the counts of other streams."""
        for name in Counts.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Group(Counts, kw_only=True):
    """Two streams or more whose names begin alike, down to a separator."""

    prefix: str


class Totals(Counts, kw_only=True):
    """The sums over all streams, and over each group; more_groups counts those beyond MOST_GROUPS.

    samples and labels are of all time. begin has the beginnings of the last HOURS hours, flags_by_hour what was flagged
    in each, the present hour last.
    """

    samples: int = 0
    labels: int = 0
    begin: list[float]
    flags_by_hour: list[int]
    groups: list[Group] = []
    more_groups: int = 0


class Summing:
    """Sums up streams that come in the order of their names."""

    def __init__(self, prefix: str, silent_seconds: float, now: float) -> None:
        self._prefix, self._now, self._silent_since = prefix, now, now - silent_seconds
        first = now // HOUR_SECONDS - HOURS + 1
        begin = [(first + hour) * HOUR_SECONDS for hour in range(HOURS)]
        self.totals = Totals(begin=begin, flags_by_hour=[0] * HOURS, groups=[])
        self._group = Group(prefix="")
        self._first = self._last = ""
        self._in_question: list[Summary] = []

    def add(self, streams: Iterable[Summary]) -> None:
        """Add streams."""
        for stream in streams:
            since = stream.written_at
            flagged = self._add_flags(stream) if stream.flags else 0
            is_silent = since is not None and since <= self._silent_since
            self._group_of(stream.stream).take(stream, flagged, is_silent=is_silent)
            self.totals.samples += stream.n_seen or 0
            self.totals.labels += stream.labels or 0
            if stream.incident is not None or stream.to_review:
                self._in_question.append(stream)

    def _add_flags(self, stream: Summary) -> int:
        by_hour, counts = self.totals.flags_by_hour, stream.flags_by_hour(self._now) or []
        for hour, count in enumerate(counts):
            by_hour[hour] += count
        return sum(counts)

    def _group_of(self, name: str) -> Group:
        """Give the group that the stream belongs to; the streams of a group come one after the other."""
        separator = _SEPARATOR.search(name, len(self._prefix))
        head = name if separator is None else name[: separator.end()]
        if head != self._group.prefix:
            self._end_group()
            self._group, self._first = Group(prefix=head), name
        self._last = name
        return self._group

    def _end_group(self) -> None:
        group, totals = self._group, self.totals
        totals.add(group)
        if group.streams > 1 and len(totals.groups) < MOST_GROUPS:
            group.prefix = shared_head(self._first, self._last, group.prefix)
            totals.groups.append(group)
        elif group.streams > 1:
            totals.more_groups += 1

    def end(self) -> Totals:
        """Give the sums."""
        self._end_group()
        return self.totals

    def first(self, order: Order, most: int) -> list[str]:
        """Give the first of those streams that are in an incident or have something to review."""
        found = ((value_of(order, stream, self._now), stream.stream) for stream in self._in_question)
        return [name for value, name in nsmallest(most, found) if value < 0]


def shared_head(first: str, last: str, head: str) -> str:
    """Give what the names from first to last share, up to its last separator; at least this head."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    shared = "".join(one for one, _ in same)
    ends = [match.end() for match in _SEPARATOR.finditer(shared)]
    return shared[: max([*ends, len(head)])]
