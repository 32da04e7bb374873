"""The files of a service's store are removed, moved, replaced or cut under it: what it acknowledged is there again."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.app.harness import blobs
from tests.forks import Fork
from tests.integration.process import WORDS, ServiceProcess
from tests.processes import wait_until

X = blobs(400).tolist()
FILES = ("itan.db", "itan.db-wal", "itan.db-shm")


class Sender(threading.Thread):
    """Sends batches with ids until one is refused for good, and keeps what was acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.http = httpx2.Client(base_url=url, trust_env=False, timeout=30)
        self.acknowledged: dict[str, int] = {}
        self.refusal: dict[str, Any] = {}
        self.is_over = threading.Event()

    def run(self) -> None:
        number = 0
        while not (self.refusal or self.is_over.is_set()):
            ids = [f"i{number + offset}" for offset in range(5)]
            answer = self.http.post("/observe?stream=s", json={"samples": rows_of(ids), "ids": ids})
            if answer.status_code == 200:
                self.acknowledged |= dict(zip(ids, answer.json()["seq"], strict=True))
                number += 5
            else:
                self.refusal = answer.json()

    def stop(self) -> None:
        self.is_over.set()
        self.join()
        self.http.close()


def rows_of(ids: list[str]) -> list[list[float]]:
    return [X[int(name[1:]) % len(X)] for name in ids]


@contextmanager
def sending(service: ServiceProcess) -> Iterator[Sender]:
    sender = Sender(service.url)
    sender.start()
    try:
        wait_until(lambda: len(sender.acknowledged) >= 150)
        yield sender
    finally:
        sender.stop()


def expect_refusals(service: ServiceProcess, sender: Sender, file: str) -> None:
    """The sender has been refused; so is everybody from now on, and the file is named."""
    wait_until(lambda: bool(sender.refusal))
    assert sender.refusal["code"] == "store_unavailable"
    assert file in sender.refusal["detail"]
    with httpx2.Client(base_url=service.url, trust_env=False, timeout=30) as http:
        ready = http.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "unready")
        assert file in ready.json()["reason"]
        read = http.post("/observe?stream=s&learn=false", json={"samples": X[:2]})
        assert (read.status_code, http.get("/livez").status_code) == (200, 200)
    assert file in service.said()


def expect_all(service: ServiceProcess, acknowledged: dict[str, int]) -> None:
    """Every sample that was acknowledged is known by its id."""
    names = list(acknowledged)
    with httpx2.Client(base_url=service.url, trust_env=False, timeout=60) as http:
        answer = http.post("/observe?stream=s", json={"samples": rows_of(names), "ids": names})
        assert answer.status_code == 200, answer.text
        assert answer.json()["seq"] == list(acknowledged.values())
        assert http.get("/metrics").text.count('itan_replay_mismatches_total{reason="other"} 0.0') == 1


def expect_no_start(path: Path, reason: str) -> None:
    said = path.with_name("refused.txt")
    service = Fork([*WORDS, "--port", "0", "--store", f"sqlite:///{path}"], os.environ, said)
    service.communicate()
    assert service.returncode == 1
    assert reason in said.read_text()


def move(path: Path, names: tuple[str, ...], *, suffix: str) -> None:
    for name in names:
        path.with_name(name).rename(path.with_name(name + suffix))


def move_back(path: Path, names: tuple[str, ...], *, suffix: str) -> None:
    for name in names:
        path.with_name(name + suffix).replace(path.with_name(name))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "itan.db"


@pytest.fixture
def service(path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(f"sqlite:///{path}", path.parent) as running:
        yield running


def test_a_write_ahead_file_that_was_removed_costs_nothing(service, path):
    with sending(service) as sender:
        path.with_name("itan.db-wal").unlink()
        expect_refusals(service, sender, "itan.db-wal was removed")
    service.kill()
    service.start()
    expect_all(service, sender.acknowledged)


def test_a_write_ahead_file_that_was_moved_away_is_not_taken_back(service, path):
    with sending(service) as sender:
        move(path, ("itan.db-wal",), suffix=".old")
        expect_refusals(service, sender, "itan.db-wal was removed")
    service.kill()
    move_back(path, ("itan.db-wal",), suffix=".old")
    expect_no_start(path, "was written for another file")  # it is older than the database by now
    path.with_name("itan.db-wal").unlink()
    service.start()
    expect_all(service, sender.acknowledged)


@pytest.mark.parametrize("names", [("itan.db",), ("itan.db", "itan.db-wal"), FILES])
def test_files_that_were_moved_away_hold_everything(service, path, names):
    with sending(service) as sender:
        move(path, names, suffix=".old")
        expect_refusals(service, sender, "itan.db was removed")
    service.kill()
    if "itan.db-wal" not in names:
        expect_no_start(path, "itan.db is missing or empty")
    move_back(path, names, suffix=".old")
    service.start()
    expect_all(service, sender.acknowledged)


def test_a_database_that_was_replaced_is_not_mixed_with_the_old_one(service, path):
    other = path.with_name("other.db")
    with ServiceProcess(f"sqlite:///{other}", path.parent) as running, sending(running):
        pass
    with sending(service) as sender:
        move(path, ("itan.db",), suffix=".old")
        shutil.copy(other, path)
        expect_refusals(service, sender, "itan.db is another file")
    service.kill()
    expect_no_start(path, "was written for another file")
    move_back(path, ("itan.db",), suffix=".old")
    service.start()
    expect_all(service, sender.acknowledged)


@pytest.mark.parametrize(("name", "size"), [("itan.db", 0), ("itan.db", 8192), ("itan.db-wal", 0)])
def test_files_that_were_cut_are_not_served_as_an_older_store(service, path, name, size):
    with sending(service) as sender:
        os.truncate(path.with_name(name), size)
        expect_refusals(service, sender, f"{name} was cut to {size} bytes")
    service.kill()
    reason = "disk image is malformed" if size else f"{name} is missing or empty"
    expect_no_start(path, reason)


def deleted_files(pid: int) -> Iterator[tuple[Path, str]]:
    """Find what a process has open of files that are gone."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        name = str(descriptor.readlink())
        if name.endswith(" (deleted)"):
            yield descriptor, Path(name.removesuffix(" (deleted)")).name


def test_files_that_were_removed_can_be_copied_from_the_process(service, path):
    with sending(service) as sender:
        for name in FILES:
            path.with_name(name).unlink()
        expect_refusals(service, sender, "itan.db was removed")
        found = {name: descriptor for descriptor, name in deleted_files(service.pid)}
        for name in ("itan.db", "itan.db-wal"):
            shutil.copy(found[name], path.with_name(name))
    service.kill()
    service.start()
    expect_all(service, sender.acknowledged)
