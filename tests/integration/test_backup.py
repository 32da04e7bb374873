"""Backups while clients observe and label, with kills of the service and of the backup: what they hold was once so."""

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import pytest

from app.storage import Entry, open_store
from app.storage.sqlite import SqliteStore
from app.streams.maintenance.backups import opened
from app.streams.maintenance.copies import labelled_seqs
from core import DetectorConfig
from core.snapshot import decode_snapshot
from tests.app.harness import Service
from tests.forks import Fork
from tests.integration.process import ServiceProcess
from tests.integration.traffic import Reading, Sender, end, read_log, wait_for_answers
from tests.processes import wait_until

STREAMS, CLIENTS = ("a", "b", "c"), 2
SETTINGS = {"snapshot_every_seconds": 0.2, "label_horizon_samples": 10**6}


@pytest.fixture(params=["sqlite", "valkey"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that outlives the service."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/itan.db"
    return str(request.getfixturevalue("redis_server").url)


class PacedSender(Sender):
    pause_seconds = 0.02


class Itan:
    """Runs commands, and keeps what they say on stderr in one file."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "commands.txt"

    def start(self, *words: object) -> Fork:
        return Fork([*map(str, words)], os.environ, self._said)

    async def succeed(self, *words: object) -> str:
        return await self.end(self.start(*words))

    async def end(self, command: Fork) -> str:
        said = await asyncio.to_thread(command.communicate)
        assert command.returncode == 0, self._said.read_text()
        return said.decode()


@pytest.fixture
def itan(tmp_path: Path) -> Itan:
    return Itan(tmp_path)


def senders_of(url: str) -> list[Sender]:
    names = [(stream, number) for stream in STREAMS for number in range(CLIENTS)]
    seed = random.randrange(10**6)
    print("seed", seed)
    return [PacedSender(f"{stream}{number}", stream, seed, [url], "stream_moved") for stream, number in names]


async def expect_whole(url: str, senders: list[Sender], answered: dict[str, int]) -> None:
    """Each stream equals a run of its log, and holds all that was acknowledged before the backup began."""
    logs = {stream: await read_log(url, stream) for stream in STREAMS}
    for stream, log in logs.items():
        await expect_labels(url, stream, log)
    async with Service(open_store(url), **SETTINGS) as service:
        for stream, log in logs.items():
            described = await service.accepted("GET", f"/streams/{stream}")
            reading = Reading(DetectorConfig.from_dict(described["config"]), log)
            exported = await service.http.get(f"/streams/{stream}/export")
            assert decode_snapshot(exported.content, "stream", 1)[1]["engine"].tobytes() == reading.detector.to_bytes()
            assert described["n_seen"] == log[-1].position.seq
            for sender in senders:
                if sender.stream == stream:
                    await expect_answers(service, sender, reading, answered[sender.name])
            assert not service.registry.peek(stream).replay_mismatches


async def expect_labels(url: str, stream: str, log: list[Entry]) -> None:
    """A sample counts as labelled if its label is in the log, and only then."""
    named = {seq for entry in log if entry.first_seq is None for seq in labelled_seqs(entry)}
    async with opened(open_store(url)) as store:
        assert named
        assert named == (await store.find_labels(stream, range(1, log[-1].position.seq + 1))).keys()


async def expect_answers(service: Service, sender: Sender, reading: Reading, answered: int) -> None:
    """What was acknowledged before the backup is there, and gets its first answer again."""
    for body, _ in sender.answered[:answered]:
        assert tuple(body["ids"]) in reading.batches
    for body, answer in sender.answered[:answered][-3:]:
        again = await service.accepted("POST", f"/observe?stream={sender.stream}", json=body)
        assert again == answer | {"samples_needed": again["samples_needed"]}


async def test_what_a_backup_under_load_holds_can_be_gone_on_from(store_url: str, itan: Itan, tmp_path: Path) -> None:
    with ServiceProcess(store_url, tmp_path, **SETTINGS) as service:
        senders = senders_of(service.url)
        tasks = [asyncio.create_task(sender.send()) for sender in senders]
        taken: list[tuple[Path, dict[str, int]]] = []
        for number in range(3):
            await wait_for_answers(tasks, senders, 8)
            answered = {sender.name: len(sender.answered) for sender in senders}
            if number == 1:  # the service dies while the backup is at work
                backup = itan.start("backup", tmp_path / str(number), "--store", store_url)
                await asyncio.sleep(random.uniform(0.0, 0.3))
                kill(service, senders)
                await itan.end(backup)
                await revive(service, senders)
            else:
                await itan.succeed("backup", tmp_path / str(number), "--store", store_url)
            taken.append((tmp_path / str(number), answered))
        await end(tasks, senders)
    for path, answered in taken:
        url = f"sqlite:///{path}.db"
        assert "3 streams" in await itan.succeed("restore", path, "--store", url)
        await expect_whole(url, senders, answered)


def kill(service: ServiceProcess, senders: list[Sender]) -> None:
    service.kill()
    for sender in senders:
        sender.is_up.clear()


async def revive(service: ServiceProcess, senders: list[Sender]) -> None:
    await asyncio.to_thread(service.start)
    for sender in senders:
        sender.is_up.set()


async def test_a_backup_that_is_killed_leaves_no_backup_and_the_next_one_tidies_up(itan: Itan, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/itan.db"
    with ServiceProcess(url, tmp_path, **SETTINGS) as service:
        senders = senders_of(service.url)
        tasks = [asyncio.create_task(sender.send()) for sender in senders]
        await wait_for_answers(tasks, senders, 5)
        folder = tmp_path / "backups"
        folder.mkdir()
        await asyncio.to_thread(kill_at_work, itan, folder, url)
        assert [file.name[:7] for file in folder.iterdir()] == [".today."]
        answered = {sender.name: len(sender.answered) for sender in senders}
        await itan.succeed("backup", folder / "today", "--store", url)
        assert [file.name for file in folder.iterdir()] == ["today"]
        await end(tasks, senders)
    restored = f"sqlite:///{tmp_path}/restored.db"
    await itan.succeed("restore", folder / "today", "--store", restored)
    await expect_whole(restored, senders, answered)


def kill_at_work(itan: Itan, folder: Path, url: str) -> None:
    """Kill a backup that has begun its file; one that is faster than that is removed, and another one begun."""
    for _ in range(50):
        backup = itan.start("backup", folder / "today", "--store", url)
        wait_until(lambda backup=backup: backup.returncode is not None or bool(list(folder.glob(".today.*"))))
        backup.kill()
        backup.communicate()
        if not (folder / "today").exists():
            return
        (folder / "today").unlink()


async def test_a_restore_that_is_killed_can_be_done_again(store_url: str, itan: Itan, tmp_path: Path) -> None:
    source = SqliteStore(tmp_path / "source.db")
    async with Service(source, **SETTINGS) as service:
        for number in range(40):
            await service.observe([[float(row % 7), float(row)] for row in range(60)], stream=f"s{number:02}")
    backup = tmp_path / "backup"
    await itan.succeed("backup", backup, "--store", f"sqlite:///{tmp_path}/source.db")
    for pause in (0.05, 0.1, 0.2):
        restore = itan.start("restore", backup, "--store", store_url)
        await asyncio.sleep(pause)
        restore.kill()
        await asyncio.to_thread(restore.communicate)
    await itan.succeed("restore", backup, "--store", store_url)
    said = await itan.succeed("restore", backup, "--store", store_url, "--dry-run")
    assert "0 streams to restore, 40 exist already" in said
    async with Service(open_store(store_url), **SETTINGS) as service:
        answer: dict[str, Any] = await service.observe([[1.0, 2.0]], stream="s29")
        assert answer["seq"] == [61]
