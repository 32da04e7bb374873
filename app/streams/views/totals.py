"""Sums over all streams, and over groups of them by the beginnings of their names."""

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

import msgspec

from app.streams.log.recent import HOUR_SECONDS, HOURS
from app.streams.open.summary import Summary

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

    def add(self, stream: Summary, now: float, silent_seconds: float) -> None:
        """Count a stream."""
        self.streams += 1
        self.unknown += not stream.is_told
        self.unreadable += not stream.readable
        self.warming_up += stream.ready is False
        self.silent += stream.written_at is not None and now - stream.written_at >= silent_seconds
        self.open_incidents += stream.incident is not None
        self.flagged_lately += stream.flagged_lately(now) or 0
        self.to_review += stream.to_review or 0


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
        self._prefix, self._silent_seconds, self._now = prefix, silent_seconds, now
        first = now // HOUR_SECONDS - HOURS + 1
        self.totals = Totals(
            begin=[(first + hour) * HOUR_SECONDS for hour in range(HOURS)], flags_by_hour=[0] * HOURS, groups=[]
        )
        self._group: Group | None = None
        self._head = self._first = self._last = ""

    def add(self, streams: Iterable[Summary]) -> None:
        """Add streams."""
        totals, now, silent = self.totals, self._now, self._silent_seconds
        for stream in streams:
            totals.add(stream, now, silent)
            totals.samples += stream.n_seen or 0
            totals.labels += stream.labels or 0
            if stream.flags:
                for hour, count in enumerate(stream.flags_by_hour(now) or ()):
                    totals.flags_by_hour[hour] += count
            self._group_of(stream.stream).add(stream, now, silent)

    def end(self) -> Totals:
        """Give the sums."""
        self._end_group()
        return self.totals

    def _group_of(self, name: str) -> Group:
        """Give the group that the stream belongs to; the streams of a group come one after the other."""
        separator = _SEPARATOR.search(name, len(self._prefix))
        head = name if separator is None else name[: separator.end()]
        if self._group is None or head != self._head:
            self._end_group()
            self._group, self._head, self._first = Group(prefix=head), head, name
        self._last = name
        return self._group

    def _end_group(self) -> None:
        group = self._group
        if group is None or group.streams == 1:
            return
        group.prefix = shared_head(self._first, self._last, self._head)
        if len(self.totals.groups) < MOST_GROUPS:
            self.totals.groups.append(group)
        else:
            self.totals.more_groups += 1


def shared_head(first: str, last: str, head: str) -> str:
    """Give what the names from first to last share, up to its last separator; at least this head."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    shared = "".join(one for one, _ in same)
    ends = [match.end() for match in _SEPARATOR.finditer(shared)]
    return shared[: max([*ends, len(head)])] if ends else head
