"""Reports on damaged streams, repairs them, and accepts what a replay or a repair has changed."""

from typing import Final

import msgspec

from app.storage import Position, StoreCorrupt
from app.streams.errors import RepairLoses
from app.streams.maintenance.diagnosis import Diagnosis, Finding, ReplayRun, diagnose
from app.streams.open.replacement import drop_log, overwrite, restore_snapshot
from app.streams.open.session import Session
from app.streams.state.integrity import Mismatches, Rebuilt
from app.streams.state.state import StreamState, after, rebased

UNREACHABLE: Final = "no sample {} can be labelled or recognised by its id"


class Checked(msgspec.Struct):
    """What a check found, and what a repair would do."""

    stream: str
    ok: bool
    findings: list[Finding]
    replayed_samples: int
    repair: str


class Repaired(msgspec.Struct):
    """What a repair did."""

    stream: str
    changed: bool
    findings: list[Finding]
    lost_first_seq: int | None = None
    lost_last_seq: int | None = None


def report(stream: str, found: Diagnosis) -> Checked:
    """Report what was found."""
    replayed = 0 if found.best is None else found.best.n_samples
    return Checked(stream, not found.findings, found.findings, replayed, repair_effect(found))


def repair_effect(found: Diagnosis) -> str:
    """Say what a repair would do."""
    if not found.is_damaged:
        return "nothing to repair"
    if found.best is None:
        return "cannot be repaired: no state of it can be read; import an export, restore a backup, or delete it"
    return "loses nothing" if found.is_exact else f"loses {losses(found)}"


def losses(found: Diagnosis) -> str:
    """Say what a repair would lose."""
    if found.keeps_log:
        return f"the log up to sample {found.damaged_to}, so that {UNREACHABLE.format('up to there')}"
    first, last = lost(found)
    kept = f"the log, so that {UNREACHABLE.format('so far')}"
    return kept if first is None else f"samples {first} to {last}, and {kept}"


def lost(found: Diagnosis) -> tuple[int, int] | tuple[None, None]:
    """Give the first and the last sample that are lost."""
    assert found.best is not None
    reached, head = found.best.state.position.seq, found.remains.head
    return (None, None) if head is None or head.seq <= reached else (reached + 1, head.seq)


async def repair(session: Session, *, lossy: bool) -> Repaired:
    """Repair a damaged stream; RepairLoses if that loses something and must not. The lock is held."""
    await session.leases.acquire(session.stream)
    found = await diagnose(session.log)
    if not found.is_damaged:
        return Repaired(session.stream, False, found.findings)
    if found.best is None:
        raise StoreCorrupt(session.stream, repair_effect(found))
    if not (lossy or found.is_exact):
        raise RepairLoses(session.stream, losses(found))
    first, last = lost(found)
    if found.keeps_log:
        await repair_log(session, found, found.best)
    else:
        state, rebuilt = found.best.state, Rebuilt(session.clock.steady(), reason(found), first, last)
        await overwrite(session, with_new_log(state, found.remains.head or state.position, rebuilt))
    return Repaired(session.stream, True, found.findings, first, last)


async def repair_log(session: Session, found: Diagnosis, best: ReplayRun) -> None:
    """Store the state that the log leads to; the log then begins after the last damaged block."""
    state, now = best.state, session.clock.steady()
    if why := reason(found):
        state.rebuilt = Rebuilt(now, why)
    for difference in best.differences:
        state.replay_mismatches.add(difference.reason, difference.logged.seq.tolist(), now)
    if found.damaged_to:
        await drop_log(session, state, found.damaged_to)
    await restore_snapshot(session, state)


def reason(found: Diagnosis) -> str:
    """Say why a state is rebuilt; nothing if it is as it was, and only blocks of the log are damaged."""
    hidden = {"not_accepted", "log_damaged"} if found.keeps_log and found.damaged_to else {"not_accepted"}
    return "; ".join(finding.text for finding in found.findings if finding.kind not in hidden)


def with_new_log(state: StreamState, head: Position, rebuilt: Rebuilt) -> StreamState:
    """Move a state behind the head of a log that cannot be kept."""
    anew = rebased(state, after(max(head, state.position)), head.seq + 1)
    anew.replay_mismatches, anew.rebuilt = state.replay_mismatches, rebuilt
    return anew


async def accept(session: Session) -> None:
    """Accept what a replay or a repair has changed, so that it is no longer shown. The lock is held."""
    state = await session.state(is_strict=False)
    unaccepted = state.replay_mismatches, state.rebuilt
    if any(unaccepted):
        state.replay_mismatches, state.rebuilt = Mismatches(), None
        try:
            await session.store_snapshot(state, as_base=True)
        except BaseException:
            state.replay_mismatches, state.rebuilt = unaccepted
            raise
    session.mark_readable()
