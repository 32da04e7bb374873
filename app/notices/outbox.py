"""What is still to be told, as marks in the store: so nothing is lost with the process.

Each rule has two lanes. In one wait the changes of incidents that it has to look at; in the other are the incidents
that it has told open, and not yet closed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from app.storage import NEW, IncidentChange, Mark, Position, Store

PAGE: Final = 200
JUST_BEFORE, TOLD = Position(0, 0), Position(1, 0)


class Outbox:
    """The lanes of the rules."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def untaken(self, after: IncidentChange | None) -> list[IncidentChange]:
        """Give the oldest changes that are in no lane of a rule yet."""
        return await self._store.changed_incidents(PAGE, NEW, after)

    async def take(self, told: Mapping[IncidentChange, Iterable[str]]) -> None:
        """Put changes into the lanes of the rules that have to look at them."""
        come = [Mark(waiting(rule), change) for change, rules in told.items() for rule in rules]
        await self._store.move_changes([Mark(NEW, change) for change in told], come)

    async def waiting(self, rule: str, limit: int = PAGE) -> list[IncidentChange]:
        """Give the oldest changes that wait for a rule."""
        return await self._store.changed_incidents(limit, waiting(rule))

    async def count(self, rule: str) -> int:
        """Count the changes that wait for a rule."""
        return await self._store.count_changes(waiting(rule))

    async def is_told(self, rule: str, change: IncidentChange) -> bool:
        """Tell whether a rule has told that an incident is open."""
        found = await self._store.changed_incidents(1, opened(rule), mark_of(change, JUST_BEFORE))
        return found == [mark_of(change, TOLD)]

    async def settle(self, rule: str, change: IncidentChange, *, is_told: bool) -> None:
        """Be done with a change, and note whether the rule has told that its incident is open."""
        told, seen = Mark(opened(rule), mark_of(change, TOLD)), Mark(waiting(rule), change)
        await (self._store.move_changes([seen], [told]) if is_told else self._store.move_changes([seen, told]))

    async def told(self, rule: str, after: IncidentChange | None) -> list[IncidentChange]:
        """Give incidents that a rule has told open."""
        return await self._store.changed_incidents(PAGE, opened(rule), after)

    async def clear(self, rule: str) -> None:
        """Empty the lanes of a rule that is gone, or new."""
        for lane in (waiting(rule), opened(rule)):
            while page := await self._store.changed_incidents(PAGE, lane):
                await self._store.move_changes(marks(lane, page))


def marks(lane: str, changes: Iterable[IncidentChange]) -> Sequence[Mark]:
    """Give the marks of changes in a lane."""
    return [Mark(lane, change) for change in changes]


def mark_of(change: IncidentChange, position: Position) -> IncidentChange:
    """Give what stands for the incident of a change."""
    return IncidentChange(0, change.stream, change.seq, position)


def waiting(rule: str) -> str:
    """Name the lane of what a rule has to look at."""
    return f"waiting:{rule}"


def opened(rule: str) -> str:
    """Name the lane of the incidents that a rule has told open."""
    return f"opened:{rule}"
