"""Checks all that is kept of a stream: can it be read, is the log complete, does a replay give the logged scores?"""

from dataclasses import dataclass, field

import msgspec

from app.counts import counted
from app.storage import Position, Remains, Snapshot, StoreCorrupt
from app.streams.errors import UnknownStream
from app.streams.log.events import UnreadableEvent
from app.streams.log.log import Log
from app.streams.open.recovery import recovery_points
from app.streams.open.replay import Difference, replay
from app.streams.state.state import StreamState
from core import InvalidSnapshot

ATTEMPTS = 3


class Finding(msgspec.Struct):
    """Something that is wrong with a stream: a stable kind, and a sentence."""

    kind: str
    text: str


@dataclass(slots=True)
class ReplayRun:
    """A replay from a readable state; the state is as of the last event that could be replayed."""

    state: StreamState
    differences: list[Difference] = field(default_factory=list)
    fault: str | None = None
    n_samples: int = 0


@dataclass(slots=True)
class Diagnosis:
    """The findings about a stream, and the replay that came farthest; a damaged stream needs a repair.

    damaged_to is the last sample in damaged blocks of the log, 0 without any.
    """

    remains: Remains
    findings: list[Finding] = field(default_factory=list)
    best: ReplayRun | None = None
    is_damaged: bool = False
    damaged_to: int = 0

    @property
    def keeps_log(self) -> bool:
        """Tell whether a repair would keep the log, at least what comes after damaged blocks."""
        return self.best is not None and self.best.fault is None and not self.remains.faults

    @property
    def is_exact(self) -> bool:
        """Tell whether a repair would lose nothing."""
        return self.keeps_log and not self.damaged_to

    def add(self, kind: str, text: str, *, is_damage: bool = True) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, text))
        self.is_damaged |= is_damage

    def read(self, snapshot: Snapshot | None, kind: str, name: str) -> StreamState | None:
        """Read a snapshot, or say what is wrong with it."""
        if snapshot is None:
            return None
        try:
            return StreamState.from_bytes(snapshot.body, snapshot.position)
        except InvalidSnapshot as error:
            self.add(kind, f"the {name} at {snapshot.position} cannot be read: {error.reason}")
            return None


async def diagnose(log: Log) -> Diagnosis:
    """Check a stream, which may change meanwhile. Raises UnknownStream if the store holds nothing of it."""
    for _ in range(ATTEMPTS):
        found = await diagnose_once(log)
        if not found.findings or positions(found.remains) == positions(await log.store.inspect(log.stream)):
            break  # otherwise what is missing may have been trimmed meanwhile
    return found


def positions(remains: Remains | None) -> object:
    """Give the positions of both snapshots, which change when one is stored."""
    return remains and [snapshot and snapshot.position for snapshot in (remains.snapshot, remains.base)]


async def diagnose_once(log: Log) -> Diagnosis:
    """Read both snapshots, and replay the log from the earliest state there is."""
    remains = await log.store.inspect(log.stream)
    if remains is None:
        raise UnknownStream(log.stream)
    found = Diagnosis(remains)
    for fault in remains.faults:
        found.add("store_damaged", fault)
    if remains.snapshot is None:
        found.add("snapshot_missing", "the snapshot is missing")
    await read_blocks(log, found)
    newest = found.read(remains.snapshot, "snapshot_unreadable", "snapshot")
    found.read(remains.base, "older_snapshot_unreadable", "older snapshot")
    await replay_all(log, found, newest)
    if found.best is not None:
        add_differences(found, found.best.differences)
    if newest is not None:
        add_unaccepted(found, newest)
    return found


async def read_blocks(log: Log, found: Diagnosis) -> None:
    """Add the blocks that cannot be read, also those that no replay needs, but late labels and repeated ids do."""
    try:
        async for block, error in log.kept.damaged_blocks():
            found.add("log_damaged", error.gap)
            found.damaged_to = block.position.seq
    except StoreCorrupt as error:
        found.add("log_damaged", error.gap, is_damage=False)  # the store itself names this fault


async def replay_all(log: Log, found: Diagnosis, newest: StreamState | None) -> None:
    """Replay from each state in turn until one replay reaches the head."""
    head = found.remains.head
    if head is None:
        return
    starts = await recovery_points(log, found.remains)
    for start in [*starts, *([] if newest is None else [newest])]:
        at = start.position
        run = await replay_from(log, start, None if start is newest else newest, head, found)
        if found.best is None or run.state.position > found.best.state.position:
            found.best = run
        if run.fault is None:
            return
        found.add("log_damaged", f"from {at} on: {run.fault}")


async def replay_from(
    log: Log, start: StreamState, newest: StreamState | None, head: Position, found: Diagnosis
) -> ReplayRun:
    """Replay from a state; compare it with the newest snapshot on the way."""
    run, n_seen = ReplayRun(start), start.detector.n_seen
    try:
        if newest is not None and start.position <= newest.position:
            await replay(log, start, newest.position, run.differences.append)
            compare_state(found, run, newest)
        await replay(log, start, head, run.differences.append)
    except StoreCorrupt as error:
        run.fault = error.gap
    except UnreadableEvent as error:
        run.fault = str(error)
    run.n_samples = start.detector.n_seen - n_seen
    return run


def compare_state(found: Diagnosis, run: ReplayRun, newest: StreamState) -> None:
    """Add a finding if the snapshot is not what the log gives; scores of another version may differ."""
    is_other = run.state.position != newest.position or run.state.detector.to_bytes() != newest.detector.to_bytes()
    if is_other and not any(difference.reason == "version" for difference in run.differences):
        found.add("state_differs", f"the snapshot at {newest.position} is not the state that the log gives")


def add_differences(found: Diagnosis, differences: list[Difference]) -> None:
    """Add the samples that got other scores than the logged ones."""
    if differences:
        count = sum(len(difference.logged) for difference in differences)
        last = int(differences[-1].logged.seq[-1])
        text = f"{counted(count, 'sample')} replayed differently, up to {last}: {differences[0]}"
        found.add("replay_differs", text, is_damage=False)


def add_unaccepted(found: Diagnosis, newest: StreamState) -> None:
    """Add the replay differences and the rebuild that nobody has accepted yet."""
    mismatches, rebuilt = newest.replay_mismatches, newest.rebuilt
    if mismatches:
        count = mismatches.version + mismatches.other
        text = f"{count} samples, {mismatches.first_seq} to {mismatches.last_seq}, replayed differently before"
        found.add("not_accepted", f"{text}, and nobody has accepted it", is_damage=False)
    if rebuilt is not None:
        text = f"the stream was rebuilt, and nobody has accepted it: {rebuilt.reason}"
        found.add("not_accepted", text, is_damage=False)
