"""What is still to be told, as marks in the store: so nothing is lost with the process.

Each rule has two lanes. In one wait the changes of incidents that it has to look at; in the other are the open
incidents that concern it: their opening is told, if the rule tells it, and their end is not.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from app.storage import NEW, IncidentChange, Mark, Position, Store
from app.streams.log.incidents import Incident

PAGE: Final = 200
MOST_REMEMBERED: Final = 10_000
JUST_BEFORE, KNOWN = Position(0, 0), Position(1, 0)


class Outbox:
    """The lanes of the rules."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._taken: dict[tuple[str, str, int, bool], IncidentChange] = {}

    async def untaken(self, after: IncidentChange | None) -> list[IncidentChange]:
        """Give the oldest changes that are in no lane of a rule yet."""
        return await self._store.changed_incidents(PAGE, NEW, after)

    async def take(self, told: Mapping[IncidentChange, Iterable[str]]) -> None:
        """Put changes into the lanes of the rules that have to look at them.

        A change takes the place of one of its incident that still waits: what is told is the incident as it is then.
        """
        come = [Mark(waiting(rule), change) for change, rules in told.items() for rule in rules]
        past = [mark for mark in map(self._replaced, come) if mark is not None]
        await self._store.move_changes([*past, *(Mark(NEW, change) for change in told)], come)

    def _replaced(self, mark: Mark) -> Mark | None:
        """Give the mark whose place another takes. A label opens no incident, so it takes the place of labels only."""
        change = mark.change
        key = mark.lane, change.stream, change.seq, change.position.sub > 0
        before = self._taken.pop(key, None)
        self._taken[key] = change
        if len(self._taken) > MOST_REMEMBERED:
            del self._taken[next(iter(self._taken))]
        return None if before in (None, change) else Mark(mark.lane, before)

    async def waiting(self, rule: str, after: IncidentChange | None = None, limit: int = PAGE) -> list[IncidentChange]:
        """Give the oldest changes that wait for a rule."""
        return await self._store.changed_incidents(limit, waiting(rule), after)

    async def count(self, rule: str) -> int:
        """Count the changes that wait for a rule."""
        return await self._store.count_changes(waiting(rule))

    async def drop_oldest(self, rule: str, count: int) -> None:
        """Forget the oldest changes that wait for a rule."""
        while count > 0 and (page := await self.waiting(rule, limit=min(PAGE, count))):
            await self._store.move_changes(marks(waiting(rule), page))
            count -= len(page)

    async def is_known(self, rule: str, stream: str, incident: Incident) -> bool:
        """Tell whether an incident is one of the open ones that concern a rule."""
        known = mark_of(stream, incident)
        before = known._replace(position=JUST_BEFORE)
        return await self._store.changed_incidents(1, opened(rule), before) == [known]

    async def settle(self, rule: str, change: IncidentChange, incident: Incident | None, *, is_open: bool) -> None:
        """Be done with a change, and note whether its incident concerns the rule and is open."""
        seen = Mark(waiting(rule), change)
        known = [] if incident is None else [Mark(opened(rule), mark_of(change.stream, incident))]
        await (self._store.move_changes([seen], known) if is_open else self._store.move_changes([seen, *known]))

    async def forget(self, rule: str, known: Iterable[IncidentChange]) -> None:
        """Forget open incidents."""
        if gone := marks(opened(rule), known):
            await self._store.move_changes(gone)

    async def open_ones(self, rule: str, after: IncidentChange | None) -> list[IncidentChange]:
        """Give open incidents that concern a rule."""
        return await self._store.changed_incidents(PAGE, opened(rule), after)

    async def clear(self, rule: str) -> None:
        """Empty the lanes of a rule that is gone, or new."""
        for lane in (waiting(rule), opened(rule)):
            while page := await self._store.changed_incidents(PAGE, lane):
                await self._store.move_changes(marks(lane, page))


def marks(lane: str, changes: Iterable[IncidentChange]) -> Sequence[Mark]:
    """Give the marks of changes in a lane."""
    return [Mark(lane, change) for change in changes]


def mark_of(stream: str, incident: Incident) -> IncidentChange:
    """Give what stands for an incident, and for no later one of its stream that has the same seq."""
    return IncidentChange(incident.opened, stream, incident.seq, KNOWN)


def waiting(rule: str) -> str:
    """Name the lane of what a rule has to look at."""
    return f"waiting:{rule}"


def opened(rule: str) -> str:
    """Name the lane of the open incidents that concern a rule."""
    return f"opened:{rule}"
