"""Damaged streams: what opens by itself, what a check says, what a repair keeps, and what stays visible."""

import json
import sqlite3
from contextlib import closing

import pytest

from app.storage import BASE_SAMPLES, Entry, Position, Snapshot
from app.storage.memory import MemoryStore
from app.storage.sqlite import SqliteStore
from app.streams.state.state import StreamState
from core import Detector, InvalidState
from tests.app.harness import FakeClock, Service, blobs
from tests.app.streams.open.test_loader import altered

BYTES = {"Content-Type": "application/octet-stream"}
X = blobs(200, 3)


async def filled(store, **settings) -> tuple[bytes, list[float]]:
    """Fill a stream "s" with 150 samples and some labels, with a base behind its snapshot, and log after both.

    Give its state, and the scores of the next 50 samples if nothing happens to it.
    """
    async with Service(store, **settings) as service:
        await fill(service)
        state = await service.export()
        await service.crash()
    if isinstance(store, MemoryStore):
        store.leases.clear()
    async with Service() as unbroken:
        await fill(unbroken)
        return state, (await unbroken.observe(X[150:]))["score"]


async def fill(service: Service) -> None:
    for number in range(15):
        start = 10 * number
        await service.observe(X[start : start + 10], ids=[f"i{i}" for i in range(start, start + 10)])
        if number % 4 == 3:
            await service.feedback({"seq": start, "anomaly": False}, {"id": f"i{start + 3}", "anomaly": True})
        if number in (2, 6, 11):
            changes = {"expected_anomaly_rate": 0.02 + number / 100, "half_life_samples": 50.0 * number}
            await service.accepted("PATCH", "/streams/s", json=changes)
        if number in (4, 9):
            await service.registry.save(service.registry.sessions["s"])


def damage(store: MemoryStore, which: str) -> None:
    """Do to the newest snapshot what a disk might."""
    stored = store.stored["s"]
    stored.snapshot = Snapshot(stored.snapshot.position, spoilt(stored.snapshot.body)[which])


def spoilt(body: bytes) -> dict[str, bytes]:
    middle = len(body) // 2
    flipped = body[:middle] + bytes([body[middle] ^ 4]) + body[middle + 1 :]
    return {"flipped": flipped, "cut": body[: len(body) - 100], "empty": b"", "foreign": b"not a snapshot at all"}


async def settle(service: Service) -> None:
    """Give the background its turn: a rebuilt stream is stored at once."""
    await service.snapshotter.save_due()


@pytest.mark.parametrize("which", ["flipped", "cut", "empty", "foreign"])
async def test_a_stream_whose_snapshot_is_damaged_opens_by_itself_and_says_so(which, caplog):
    store = MemoryStore()
    _, scores = await filled(store)
    damage(store, which)
    async with Service(store) as service:
        described = await service.accepted("GET", "/streams/s")
        assert described["rebuilt"]["reason"].startswith("not a usable snapshot")
        assert described["rebuilt"]["lost_first_seq"] is None
        assert described["replay_mismatches"]["other"] == 0
        assert await service.metric("itan_streams_rebuilt_total") == 1
        assert await service.metric("itan_damaged_streams") == 0
        await settle(service)
        assert (await service.observe(X[150:]))["score"] == scores
        assert (await service.feedback({"id": "i20", "anomaly": False}))["outcome"] == ["applied"]
    assert "rebuilt from its log, without loss" in caplog.text
    async with Service(store) as again:
        assert (await again.accepted("GET", "/streams/s"))["rebuilt"] == described["rebuilt"]
        assert await again.metric("itan_streams_rebuilt_total") == 0
        await again.accepted("POST", "/streams/s/accept")
        await again.crash()
    async with Service(store) as again:
        assert (await again.accepted("GET", "/streams/s"))["rebuilt"] is None


async def test_the_rebuilt_state_is_the_same_to_the_bit():
    store = MemoryStore()
    await filled(store)
    async with Service(store) as service:
        expected = await service.accepted("GET", "/density?stream=s")
        await service.crash()
    damage(store, "cut")
    async with Service(store) as service:
        assert await service.accepted("GET", "/density?stream=s") == expected


async def test_a_missing_row_is_rebuilt_from_too(tmp_path):
    store = SqliteStore(tmp_path / "itan.db")
    _, scores = await filled(store)
    with closing(sqlite3.connect(tmp_path / "itan.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM snapshots")
    async with Service(SqliteStore(tmp_path / "itan.db")) as service:
        check = await service.accepted("GET", "/streams/s/check")
        assert [finding["kind"] for finding in check["findings"]] == ["snapshot_missing"]
        assert check["repair"] == "loses nothing"
        assert (await service.observe(X[150:]))["score"] == scores
        await settle(service)
        assert (await service.accepted("GET", "/streams/s/check"))["findings"][0]["kind"] == "not_accepted"


@pytest.mark.parametrize("which", ["flipped", "cut"])
async def test_with_the_log_from_the_first_sample_the_config_in_the_remains_is_enough(which):
    store = MemoryStore()
    _, scores = await filled(store)
    damage(store, which)
    store.stored["s"].base = None
    async with Service(store) as service:
        assert (await service.observe(X[150:]))["score"] == scores


async def test_a_config_that_is_damaged_too_is_not_taken():
    store = MemoryStore()
    await filled(store)
    stored = store.stored["s"]
    body = stored.snapshot.body.replace(b'"cost_false_positive":1.0', b'"cost_false_positive":9.0')
    assert body != stored.snapshot.body
    stored.snapshot, stored.base = Snapshot(stored.snapshot.position, body), None
    async with Service(store) as service:
        await service.refused("GET", "/streams/s", 500, "store_corrupt")
        assert await service.metric("itan_damaged_streams") == 1


async def test_what_was_reset_is_rebuilt_from_its_own_beginning():
    store = MemoryStore()
    async with Service(store) as service:
        await fill(service)
        await service.accepted("POST", "/streams/s/reset")
        expected = (await service.observe(X[:100]))["score"]
        await service.registry.save(service.registry.sessions["s"])
        await service.crash()
    store.stored["s"].base = None
    damage(store, "cut")
    async with Service(store) as service:
        assert (await service.accepted("GET", "/streams/s"))["rebuilt"]
        assert (await service.accepted("GET", "/streams/s/samples/250"))["score"] == expected[-1]


async def test_a_check_of_a_healthy_stream_replays_it_and_finds_nothing(service):
    await fill(service)
    before = await service.export()
    check = await service.accepted("GET", "/streams/s/check")
    assert check == {
        "stream": "s",
        "ok": True,
        "findings": [],
        "replayed_samples": 100,
        "repair": "nothing to repair",
    }
    repaired = await service.accepted("POST", "/streams/s/repair")
    assert (repaired["changed"], repaired["findings"]) == (False, [])
    assert await service.export() == before
    await service.refused("GET", "/streams/t/check", 404, "unknown_stream")
    await service.refused("POST", "/streams/t/repair", 404, "unknown_stream")
    await service.refused("POST", "/streams/t/accept", 404, "unknown_stream")


def without_entry(store: MemoryStore, at: int) -> None:
    del store.stored["s"].log[at]


async def test_a_gap_behind_the_snapshot_loses_what_comes_after_it_and_only_if_allowed():
    store = MemoryStore()
    await filled(store)
    log = store.stored["s"].log
    at = next(i for i, entry in enumerate(log) if entry.first_seq == 121)
    without_entry(store, at)
    before = store.stored["s"].log[:], store.stored["s"].snapshot
    async with Service(store) as service:
        assert await service.refused("POST", "/observe?stream=s", 500, "store_corrupt", json={"samples": [[1, 1, 1]]})
        assert await service.metric("itan_damaged_streams") == 1
        health = await service.accepted("GET", "/readyz")
        assert health["damaged_streams"] == 1
        assert "1 damaged stream:" in health["warnings"][-1]
        check = await service.accepted("GET", "/streams/s/check")
        assert not check["ok"]
        assert "gap: 131 comes after 120" in json.dumps(check["findings"])
        assert check["repair"].startswith("loses samples 121 to 150")
        problem = await service.refused("POST", "/streams/s/repair", 409, "repair_loses")
        assert "121 to 150" in problem["detail"]
        assert (store.stored["s"].log, store.stored["s"].snapshot) == before
        repaired = await service.accepted("POST", "/streams/s/repair?lossy=true")
        assert (repaired["changed"], repaired["lost_first_seq"], repaired["lost_last_seq"]) == (True, 121, 150)
        assert (await service.observe(X[150:]))["seq"][0] == 151
        described = await service.accepted("GET", "/streams/s")
        assert (described["n_seen"], described["rebuilt"]["lost_last_seq"]) == (170, 150)
        assert (await service.accepted("GET", "/readyz"))["damaged_streams"] == 0


async def test_an_event_that_cannot_be_read_is_damage():
    store = MemoryStore()
    await filled(store)
    log = store.stored["s"].log
    log[-1] = Entry(log[-1].position, b"nothing", log[-1].first_seq, log[-1].ids)
    async with Service(store) as service:
        check = await service.accepted("GET", "/streams/s/check")
        assert check["findings"][0]["kind"] == "log_damaged"
        assert "samples 141 to 150" in check["repair"]


async def test_nothing_that_can_be_read_can_only_be_replaced():
    store = MemoryStore()
    state, _ = await filled(store)
    damage(store, "foreign")
    store.stored["s"].base = None
    async with Service(store) as service:
        check = await service.accepted("GET", "/streams/s/check")
        assert check["repair"].startswith("cannot be repaired")
        await service.refused("POST", "/streams/s/repair?lossy=true", 500, "store_corrupt")
        await service.refused("POST", "/streams/s/reset", 500, "store_corrupt")
        described = await service.accepted("PUT", "/streams/s/import", content=state, headers=BYTES)
        assert (described["n_seen"], described["next_seq"]) == (150, 151)
        assert (await service.accepted("GET", "/readyz"))["damaged_streams"] == 0


async def test_a_damaged_stream_is_not_replayed_for_each_request(monkeypatch):
    store, clock = MemoryStore(), FakeClock()
    await filled(store)
    damage(store, "cut")
    without_entry(store, -2)
    tried = []
    async with Service(store, clock) as service:
        monkeypatch.setattr("app.streams.open.loader.recovery_points", lambda *given: tried.append(given) or none())
        for _ in range(5):
            await service.refused("GET", "/streams/s", 500, "store_corrupt")
        once = len(tried)
        clock.advance(31)
        await service.refused("GET", "/streams/s", 500, "store_corrupt")
        assert len(tried) == 2 * once


async def none() -> list[StreamState]:
    return []


async def test_a_snapshot_that_is_not_what_the_log_gives_is_found_and_repaired():
    """As after a fault that changed a state between two samples."""
    store = MemoryStore()
    await filled(store)
    async with Service() as other:
        await other.observe(X[:110])
        foreign = other.registry.peek("s").to_bytes()
    stored = store.stored["s"]
    stored.snapshot = Snapshot(Position(110, 0), foreign)
    stored.log[:] = [entry for entry in stored.log if not (entry.first_seq is None and entry.position.seq >= 110)]
    log, position = [], Position(0, 0)
    for entry in stored.log:
        if entry.follows(position):
            log.append(entry)
            position = entry.position
    stored.log, stored.head = log, position
    async with Service(store) as service:
        check = await service.accepted("GET", "/streams/s/check")
        kinds = [finding["kind"] for finding in check["findings"]]
        assert "state_differs" in kinds
        assert check["repair"] == "loses nothing"
        assert (await service.accepted("POST", "/streams/s/repair"))["changed"]
        again = await service.accepted("GET", "/streams/s/check")
        assert "state_differs" not in [finding["kind"] for finding in again["findings"]]


# what stays visible


async def test_a_mismatch_stays_visible_until_it_is_accepted():
    store = await altered("score", 0.5)
    for _ in range(3):
        async with Service(store) as service:
            await service.observe(blobs(2))
            found = (await service.accepted("GET", "/streams/s"))["replay_mismatches"]
            assert (found["other"], found["first_seq"], found["last_seq"]) == (1, 41, 41)
            assert await service.metric("itan_mismatched_streams") == 1
            check = await service.accepted("GET", "/streams/s/check")
            assert check["findings"][-1]["kind"] in ("not_accepted", "replay_differs")
    async with Service(store) as service:
        accepted = await service.accepted("POST", "/streams/s/accept")
        assert accepted["replay_mismatches"]["other"] == 0
        assert await service.metric("itan_mismatched_streams") == 0
        await service.crash()
    async with Service(store) as service:
        assert (await service.accepted("GET", "/streams/s"))["replay_mismatches"]["other"] == 0
        assert (await service.accepted("GET", "/streams/s/check"))["ok"]
        assert await service.metric("itan_mismatched_streams") == 0


async def test_a_strict_service_serves_again_what_was_accepted():
    store = await altered("score", 0.5)
    async with Service(store, strict_replay=True) as service:
        await service.refused("GET", "/streams/s", 503, "replay_mismatch")
        assert await service.metric("itan_mismatched_streams") == 1
        await service.accepted("POST", "/streams/s/accept")
        assert (await service.observe([[1.0, 1.0]]))["seq"] == [42]


@pytest.mark.parametrize("end", ["reset", "delete"])
async def test_a_mismatch_ends_with_its_stream(end):
    async with Service(await altered("score", 0.5)) as service:
        await service.accepted("GET", "/streams/s")
        if end == "reset":
            assert (await service.accepted("POST", "/streams/s/reset"))["replay_mismatches"]["other"] == 0
        else:
            await service.http.delete("/streams/s")
        assert await service.metric("itan_mismatched_streams") == 0


async def test_a_mismatch_goes_along_to_another_worker_and_is_accepted_there():
    clock = FakeClock()
    store = await altered("score", 0.5, store=MemoryStore(clock.monotonic))
    store.leases.clear()
    async with Service(store, clock, worker="a") as a, Service(store, clock, worker="b") as b:
        await a.observe(blobs(1))
        await a.registry.save(a.registry.sessions["s"], closing="idle")
        assert await a.metric("itan_mismatched_streams") == 1
        clock.advance(6)
        await b.observe(blobs(1))
        assert (await b.accepted("GET", "/streams/s"))["replay_mismatches"]["other"] == 1
        await b.accepted("POST", "/streams/s/accept")
        await a.app.state.service.checker.recheck()
        assert await a.metric("itan_mismatched_streams") == 0


async def test_damage_that_another_worker_repaired_is_forgotten():
    store = MemoryStore()
    await filled(store)
    without_entry(store, -2)
    async with Service(store, worker="a") as a, Service(store, worker="b") as b:
        await a.refused("GET", "/streams/s", 500, "store_corrupt")
        await a.app.state.service.checker.recheck()
        assert await a.metric("itan_damaged_streams") == 1
        await b.accepted("POST", "/streams/s/repair?lossy=true")
        await a.app.state.service.checker.recheck()
        assert await a.metric("itan_damaged_streams") == 0


async def test_a_repair_respects_the_lease():
    clock = FakeClock()
    store = MemoryStore(clock.monotonic)
    await filled(store)
    async with Service(store, clock, worker="a") as a, Service(store, clock, worker="b") as b:
        await a.observe(X[:1])
        damage(store, "cut")
        await b.refused("POST", "/streams/s/repair", 503, "stream_elsewhere")
        await b.refused("POST", "/streams/s/accept", 503, "stream_elsewhere")
        assert not (await b.accepted("GET", "/streams/s/check"))["ok"]
        await b.refused("GET", "/streams/s", 503, "stream_elsewhere")


# states that could not be read back


@pytest.fixture
def invalid(monkeypatch):
    """Let no detector be written while it is set."""
    state = {"is_invalid": True}
    real = Detector.to_bytes

    def to_bytes(self):
        if state["is_invalid"]:
            raise InvalidState("its weights are gone")
        return real(self)

    monkeypatch.setattr(Detector, "to_bytes", to_bytes)
    return state


async def test_a_state_that_could_not_be_read_back_is_not_stored_and_the_stream_goes_on(invalid, caplog):
    invalid["is_invalid"] = False
    store, clock = MemoryStore(), FakeClock()
    async with Service(store, clock, snapshot_every_seconds=30, idle_seconds=60, label_horizon_samples=50) as service:
        await service.observe(X[:100])
        before = store.stored["s"].snapshot
        invalid["is_invalid"] = True
        for _ in range(3):
            clock.advance(31)
            await service.snapshotter.save_due()
            await service.snapshotter.save_due()
        assert store.stored["s"].snapshot == before
        assert len(store.stored["s"].log) == 1
        assert await service.metric("itan_snapshot_failures_total") == 3
        assert (await service.accepted("GET", "/streams/s"))["snapshot_failure"] == "its weights are gone"
        assert await service.metric("itan_snapshot_age_seconds") > 60
        assert (await service.observe(X[100:150]))["seq"][-1] == 150
        assert await service.accepted("POST", "/observe?stream=s&learn=false", json={"samples": (X * 1.0).tolist() * 2})
        assert (await service.feedback({"seq": 120, "anomaly": True}, query="&dry_run=true"))["outcome"] == ["applied"]
        await service.refused("GET", "/streams/s/export", 500, "invalid_state")
        assert caplog.text.count("no snapshot of stream s") == 1
        clock.advance(61)
        await service.registry.close_unused()
        assert not service.registry.sessions
        invalid["is_invalid"] = False
        assert (await service.observe(X[150:151]))["seq"] == [151]
        clock.advance(31)
        await service.snapshotter.save_due()
        assert store.stored["s"].snapshot.position == Position(151, 0)
        assert (await service.accepted("GET", "/streams/s"))["snapshot_failure"] is None


async def test_what_a_base_costs(service):
    """A second snapshot, written once in BASE_SAMPLES."""
    written = []
    real = service.store.save_snapshot

    async def save(stream, snapshot, *given, **more):
        base = service.store.stored[stream].base
        await real(stream, snapshot, *given, **more)
        written.append(service.store.stored[stream].base is not base)

    service.store.save_snapshot = save
    for start in range(0, 2 * BASE_SAMPLES, 500):
        await service.observe(blobs(500, seed=start))
        await service.registry.save(service.registry.sessions["s"])
    assert (len(written), sum(written)) == (2 * BASE_SAMPLES // 500, 2)


@pytest.mark.parametrize("n_before", [0, 20])
@pytest.mark.parametrize("how", ["reset", "import"])
async def test_a_stream_that_began_anew_is_found_whole(how: str, n_before: int) -> None:
    async with Service() as service:
        await service.http.put("/streams/s", json={"n_features": 3})
        blank = (await service.http.get("/streams/s/export")).content
        if n_before:
            await service.observe(X[:n_before])
        if how == "reset":
            await service.http.post("/streams/s/reset")
        else:
            await service.http.put("/streams/s/import", content=blank, headers=BYTES)
        for n_samples in (0, 1, 30):
            if n_samples:
                await service.observe(X[:n_samples])
            assert (await service.accepted("GET", "/streams/s/check"))["findings"] == []
