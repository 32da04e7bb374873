"""Backups of every kind of store, restored into every kind of store."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.commands.backup import back_up as back_up_url
from app.commands.backup import put_back
from app.storage import (
    START,
    DocumentKind,
    Entry,
    LeaseHeld,
    Position,
    Snapshot,
    Store,
    StoreCorrupt,
    StoreError,
    open_store,
)
from app.storage.memory import MemoryStore
from app.storage.sqlite import SqliteStore
from app.storage.sqlite.backup import BackupReader
from app.streams.log.log import Log
from app.streams.maintenance import backups
from app.streams.maintenance.copies import PAGE_ENTRIES, UNFINISHED, copy, digest
from core import DetectorConfig
from tests.app.harness import DisturbedStore, Service, blobs
from tests.contract.conftest import SERVED
from tests.integration.traffic import Reading

X = blobs(400)


async def fill(store: Store) -> dict[str, Any]:
    """Observe and label two streams; give the answer to the first batch."""
    async with Service(store, label_horizon_samples=10**6) as service:
        first = await service.observe(X[:100], ids=[f"i{number}" for number in range(100)])
        for start in range(100, 300, 20):
            await service.observe(X[start : start + 20], ids=[f"i{start + offset}" for offset in range(20)])
            await service.feedback(
                {"id": f"i{start - 50}", "anomaly": bool(start % 40)}, {"seq": start, "anomaly": False}
            )
            if start % 60 == 0:
                await service.registry.save(service.registry.sessions["s"])
        await service.accepted("PATCH", "/streams/s", json={"expected_anomaly_rate": 0.04, "half_life_samples": 900})
        await service.observe(X[300:310], ids=[f"i{number}" for number in range(300, 310)])
        await service.feedback({"id": "i20", "anomaly": True}, {"id": "i50", "anomaly": True})
        await service.observe(X[:3], stream="young")
        await store.put_document(DocumentKind.SOURCE, "agents", b"as they send")
    return first


async def log_of(store: Store, stream: str) -> list[Entry]:
    log, found = Log(store, stream), list[Entry]()
    while page := await log.entries(found[-1].position if found else START, 100):
        found += page
    return found


async def expect_the_same(store: Store, first: dict[str, Any]) -> None:
    """Repeated ids, late labels and scores are as they were; the state is that of a run of the log."""
    async with Service(store) as service:
        again = await service.observe(X[:100], ids=[f"i{number}" for number in range(100)])
        assert again == first | {"samples_needed": again["samples_needed"]}
        outcome = await service.feedback({"id": "i50", "anomaly": True}, {"id": "i3", "anomaly": True})
        assert outcome["outcome"] == ["duplicate", "applied"]
        state = service.registry.peek("s")
        reading = Reading(DetectorConfig(n_features=2), await log_of(store, "s"))
        assert state.detector.to_bytes() == reading.detector.to_bytes()
        assert (await service.observe(X[310:311]))["seq"] == [311]
        assert (await service.accepted("GET", "/streams/young"))["n_seen"] == 3
        assert await store.documents(DocumentKind.SOURCE) == {"agents": b"as they send"}


async def digests(store: Store, *names: str) -> list[bytes]:
    return [await digest(store, name) for name in names]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "today"


@pytest.fixture
async def backed_up(target: Path) -> dict[str, Any]:
    """A backup of a store in memory."""
    store = MemoryStore()
    first = await fill(store)
    assert (await backups.back_up(store, target, "memory")).streams == 2
    return first


async def restored(target: Path, url: str, **options: bool) -> backups.Tally | None:
    chosen = {"is_forced": False, "is_trial": False, "is_incomplete": False} | options
    return await put_back(target, url, **chosen)


async def test_a_backup_of_any_store_can_be_restored(store_url, target, tmp_path):
    store = open_store(store_url)
    first = await fill(store)
    async with backups.opened(store):
        before = await digests(store, "s", "young")
        tally = await backups.back_up(store, target, "any")
    assert (tally.streams, tally.samples, tally.damaged) == (2, 313, {})
    assert [file.name for file in tmp_path.iterdir() if "today" in file.name] == ["today"]
    url = f"sqlite:///{tmp_path}/restored.db"
    assert (await restored(target, url)).streams == 2
    back = open_store(url)
    await back.open()
    assert await digests(back, "s", "young") == before
    await back.close()
    await expect_the_same(SqliteStore(tmp_path / "restored.db"), first)


async def test_a_backup_can_be_restored_into_any_store(lasting_url, backed_up, target):
    assert (await restored(target, lasting_url)).samples == 313
    assert (await restored(target, lasting_url)).streams == 0  # all is there
    await expect_the_same(open_store(lasting_url), backed_up)
    with pytest.raises(backups.BackupRefused, match=r"2 streams that differ from the backup \(s, young\)|1 streams"):
        await restored(target, lasting_url)
    assert (await restored(target, lasting_url, is_forced=True)).streams >= 1
    await expect_the_same(open_store(lasting_url), backed_up)


async def test_a_store_that_holds_anything_else_is_left_alone(backed_up, target, tmp_path):
    store = SqliteStore(tmp_path / "other.db")
    await store.open()
    await store.create("mine", Snapshot(START, b"mine"))
    await store.close()
    with pytest.raises(backups.BackupRefused, match=r"1 streams that differ from the backup \(mine\)"):
        await restored(target, f"sqlite:///{tmp_path}/other.db")
    await store.open()
    assert await store.streams("", 9) == ["mine"]
    await store.close()
    assert (await restored(target, f"sqlite:///{tmp_path}/other.db", is_forced=True)).streams == 2
    await store.open()
    assert await store.streams("", 9) == ["s", "young"]
    await store.close()


async def test_a_trial_changes_nothing_and_says_what_would_come(backed_up, target, tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/new.db"
    assert await restored(target, url, is_trial=True) is None
    assert not (tmp_path / "new.db").exists()
    said = capsys.readouterr().out
    assert "restore s to sample 310," in said
    assert "2 streams to restore, 0 exist already" in said
    await restored(target, url)
    await restored(target, url, is_trial=True)
    assert "0 streams to restore, 2 exist already" in capsys.readouterr().out


async def test_nothing_is_overwritten_and_nothing_is_left_behind(target, tmp_path):
    target.write_bytes(b"precious")
    with pytest.raises(backups.BackupRefused, match="never replaces a file"):
        await backups.back_up(MemoryStore(), target, "memory")
    assert target.read_bytes() == b"precious"
    with pytest.raises(backups.BackupRefused, match="no folder"):
        await backups.back_up(MemoryStore(), tmp_path / "none" / "today", "memory")
    assert [file.name for file in tmp_path.iterdir()] == ["today"]


async def test_a_disk_without_links_and_write_ahead_files_will_do(backed_up, target, tmp_path, monkeypatch):
    names: set[str] = set()

    def refuse(source: Path, *_: object) -> None:
        names.update(file.name for file in Path(source).parent.iterdir())
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    async with backups.opened(BackupReader(target)) as backup:
        await backups.back_up(backup, tmp_path / "copy", "sqlite")
    assert names == {"itan.db", "itan.db.lock"}
    assert (await restored(tmp_path / "copy", f"sqlite:///{tmp_path}/new.db")).streams == 2


async def test_a_file_that_comes_meanwhile_is_not_overwritten(target, tmp_path):
    store = DisturbedStore(MemoryStore())

    async def appear() -> None:
        target.write_bytes(b"precious")

    store.before["streams"] = appear
    with pytest.raises(backups.BackupRefused, match="never replaces a file"):
        await backups.back_up(store, target, "memory")
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize("place", [3_000, 20_000, 50_000, 90_000, -200])
async def test_a_changed_byte_is_found_before_anything_is_changed(backed_up, target, tmp_path, place):
    damaged = bytearray(target.read_bytes())
    damaged[place] ^= 1
    target.write_bytes(damaged)
    try:
        await restored(target, f"sqlite:///{tmp_path}/new.db")
    except StoreError:
        assert not (tmp_path / "new.db").exists()
    else:  # it lies where nothing is kept
        await expect_the_same(SqliteStore(tmp_path / "new.db"), backed_up)


async def test_a_changed_body_is_found(backed_up, target, tmp_path):
    with closing(sqlite3.connect(target)) as other:
        other.execute("UPDATE log SET body = zeroblob(length(body)) WHERE rowid = 5")
        other.commit()
    with pytest.raises(StoreCorrupt, match="stream 's': it has changed since the backup was made"):
        await restored(target, f"sqlite:///{tmp_path}/new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
async def test_a_file_that_was_cut_is_refused(backed_up, target, tmp_path, share):
    whole = target.read_bytes()
    target.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises((StoreCorrupt, StoreError)):
        await restored(target, f"sqlite:///{tmp_path}/new.db")
    assert not (tmp_path / "new.db").exists()


async def test_a_service_does_not_start_on_a_backup(backed_up, target):
    with pytest.raises(StoreError, match="another program"):
        await SqliteStore(target).open()


async def test_a_restore_that_was_cut_short_goes_on(lasting_url, backed_up, target):
    store = DisturbedStore(open_store(lasting_url))

    async def fail(*given: Any) -> None:
        raise KeyboardInterrupt

    store.before["save_snapshot"] = fail
    async with backups.opened(BackupReader(target)) as backup, backups.opened(store):
        with pytest.raises(KeyboardInterrupt):
            await backups.restore(backup, store, await backups.plan(["s", "young"], backup, store))
        assert (await store.load("s"))[0].body == UNFINISHED
    async with Service(open_store(lasting_url)) as service:
        answer = await service.http.post("/observe?stream=s", json={"samples": X[:1].tolist()})
        assert answer.json()["code"] in ("store_corrupt", "stream_elsewhere")
    assert (await restored(target, lasting_url)).streams == 2
    await expect_the_same(open_store(lasting_url), backed_up)


@pytest.mark.parametrize("lasting_url", SERVED, indirect=True)
async def test_a_lease_that_a_killed_restore_has_left_is_ended(lasting_url, backed_up, target):
    await restored(target, lasting_url)
    async with backups.opened(open_store(lasting_url)) as store:
        await store.acquire("s", backups.OWNER, 60)
        await store.acquire("young", "worker", 60)
        with pytest.raises(LeaseHeld):
            await store.acquire("s", "another worker", 60)
        await restored(target, lasting_url)
        await store.acquire("s", "another worker", 60)
        with pytest.raises(LeaseHeld):
            await store.acquire("young", "another worker", 60)


async def test_a_stream_that_is_being_served_is_not_replaced(backed_up, target):
    store = MemoryStore()
    await store.create("s", Snapshot(START, b"mine"))
    await store.acquire("s", "worker", 5)
    async with backups.opened(BackupReader(target)) as backup:
        made = await backups.plan(["s", "young"], backup, store)
        assert (made.in_the_way, made.missing) == (["s"], ["s", "young"])
        with pytest.raises(LeaseHeld):
            await backups.restore(backup, store, made)
    assert await store.streams("", 9) == ["s"]


async def test_the_database_of_a_store_can_be_restored_as_far_as_it_goes(tmp_path):
    store = SqliteStore(tmp_path / "itan.db")
    await store.open()
    await store.create("old", Snapshot(START, b"old"))
    await store.close()
    await store.open()
    await store.create("new", Snapshot(START, b"new"))
    bare = tmp_path / "bare.db"
    bare.write_bytes((tmp_path / "itan.db").read_bytes())
    await store.close()
    url = f"sqlite:///{tmp_path}/restored.db"
    assert (await restored(tmp_path / "itan.db", url)).streams == 2
    with pytest.raises(StoreCorrupt, match="-wal is missing"):
        await restored(bare, f"sqlite:///{tmp_path}/bare-restored.db")
    assert (await restored(bare, f"sqlite:///{tmp_path}/bare-restored.db", is_incomplete=True)).streams == 1


async def test_a_damaged_stream_is_left_out_and_named(target, tmp_path):
    path = tmp_path / "itan.db"
    await fill(SqliteStore(path))
    with closing(sqlite3.connect(path)) as other:
        other.execute("DELETE FROM snapshots WHERE stream = (SELECT number FROM streams WHERE name = 's')")
        other.commit()
    tally = await back_up_url(target, f"sqlite:///{path}")
    assert (tally.streams, tally.damaged) == (1, {"s": "stream 's': the snapshot is missing"})
    assert (await restored(target, f"sqlite:///{tmp_path}/new.db")).streams == 1


# what happens to a stream while it is copied


def batch(seq: int) -> Entry:
    return Entry(Position(seq, 0), b"%d" % seq, seq, (f"id {seq}",))


async def grown(n: int) -> MemoryStore:
    store = MemoryStore()
    await store.create("s", Snapshot(START, b"start"))
    await grow(store, 1, n)
    return store


async def grow(store: MemoryStore, first: int, last: int) -> None:
    for seq in range(first, last + 1):
        await store.append("s", Position(seq - 1, 0), batch(seq))


def once(work: Any) -> Any:
    """Make a hook that works at its second call: between the first page and the next."""
    calls: list[int] = []

    async def hook() -> None:
        calls.append(1)
        if len(calls) == 2:
            await work()

    return hook


async def test_a_stream_that_is_trimmed_meanwhile_is_copied_anew():
    store = await grown(3 * PAGE_ENTRIES)
    disturbed = DisturbedStore(store)
    newer = Snapshot(Position(2 * PAGE_ENTRIES, 0), b"newer")
    disturbed.before["entries"] = once(lambda: store.save_snapshot("s", newer, 2 * PAGE_ENTRIES + 1))
    target = MemoryStore()
    copied = await copy(disturbed, target, "s")
    assert copied.samples == PAGE_ENTRIES
    assert await digests(target, "s") == await digests(store, "s")


async def test_a_stream_that_is_reset_meanwhile_is_copied_anew():
    store = await grown(PAGE_ENTRIES)
    disturbed = DisturbedStore(store)

    async def reset() -> None:
        await store.replace("s", Position(PAGE_ENTRIES, 0), Snapshot(Position(PAGE_ENTRIES, 1), b"anew"))
        await store.append("s", Position(PAGE_ENTRIES, 1), batch(PAGE_ENTRIES + 1))

    disturbed.before["entries"] = once(reset)
    target = MemoryStore()
    await copy(disturbed, target, "s")
    assert await target.load("s") == await store.load("s")
    assert await log_of(target, "s") == await log_of(store, "s")
    assert (await target.load("s"))[0].body == b"anew"


async def test_a_stream_that_grows_meanwhile_is_copied_with_what_came():
    store = await grown(PAGE_ENTRIES)
    disturbed = DisturbedStore(store)
    newer = Snapshot(Position(PAGE_ENTRIES + 5, 0), b"newer")

    async def go_on() -> None:
        await grow(store, PAGE_ENTRIES + 1, PAGE_ENTRIES + 9)
        await store.save_snapshot("s", newer, 1)

    disturbed.before["entries"] = once(go_on)
    target = MemoryStore()
    assert (await copy(disturbed, target, "s")).position == Position(PAGE_ENTRIES + 9, 0)
    assert await log_of(target, "s") == await log_of(store, "s")


async def test_a_stream_that_is_deleted_meanwhile_is_no_stream():
    store = await grown(PAGE_ENTRIES)
    disturbed = DisturbedStore(store)
    disturbed.before["entries"] = once(lambda: store.delete("s"))
    target = MemoryStore()
    assert await copy(disturbed, target, "s") is None
    assert await target.streams("", 9) == []


async def test_a_label_that_comes_meanwhile_is_in_the_copy_with_its_event():
    """The record is newer than the page that was read: without its event the model would never learn of it."""
    was_labelled = False
    store = MemoryStore()
    await fill(store)
    disturbed = DisturbedStore(store)

    async def label() -> None:
        nonlocal was_labelled
        if was_labelled:
            return
        was_labelled = True
        async with Service(store) as service:
            await service.feedback({"id": "i50", "anomaly": False}, {"id": "i3", "anomaly": True})
            await service.crash()  # a snapshot would tell that there is more

    disturbed.before["find_labels"] = label
    target = MemoryStore()
    await copy(disturbed, target, "s")
    assert await log_of(target, "s") == await log_of(store, "s")
    assert await target.find_labels("s", range(1, 311)) == await store.find_labels("s", range(1, 311))
