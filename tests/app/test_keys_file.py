"""Keys from a file: what is read, what is refused, and that they come and go without a restart."""

import json
import os
from hmac import compare_digest
from pathlib import Path
from shutil import move

import pytest
from starlette.requests import Request

from app.security import COOKIE, InvalidKeys, KeyFile, KeyRing, Scope
from app.security.grants import digest_of
from app.settings import OpenBindRefused, Settings
from tests.app.harness import Service
from tests.app.watcher import Watcher


def line(name: str, key: str, *scopes: str, **more: object) -> str:
    return json.dumps({"name": name, "sha256": digest_of(key).hex(), "scopes": scopes or ["admin"], **more})


def write(path: Path, *lines: str) -> Path:
    """Replace the file in one step, as one should."""
    fresh = path.with_suffix(".new")
    fresh.write_text("\n".join(lines) + "\n")
    fresh.replace(path)
    return path


GOOD = ("# keys of the tests", "", line("ops", "k-ops"), line("ci", "k-ci", "observe"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "keys", *GOOD)


async def status(service: Service, key: str, path: str = "/streams") -> int:
    return (await service.http.get(path, headers={"X-API-Key": key})).status_code


async def test_keys_of_the_file_and_of_the_environment_are_good(path: Path) -> None:
    async with Service(api_keys="k-env:read", api_keys_file=str(path)) as service:
        found = [await status(service, key) for key in ("k-env", "k-ops", "k-ci", "wrong", digest_of("k-ops").hex())]
        assert found == [200, 200, 403, 401, 401]
        assert await service.metric("itan_api_keys") == 3
        assert await service.metric("itan_api_keys_file_broken") == 0


async def test_keys_come_and_go_with_the_file(path: Path) -> None:
    async with Service(api_keys_file=str(path)) as service:
        answer = await service.http.post("/session", json={"key": "k-ops"})
        cookie = {"Cookie": f"{COOKIE}={answer.cookies[COOKIE]}"}
        service.http.cookies.clear()
        assert (await service.http.get("/streams", headers=cookie)).status_code == 200
        write(path, line("new", "k-new"))
        assert await status(service, "k-new") == 401
        await service.app.state.service.key_watch.look()
        assert [await status(service, key) for key in ("k-new", "k-ops")] == [200, 401]
        assert (await service.http.get("/streams", headers=cookie)).status_code == 401


async def test_who_watches_with_a_key_that_goes_is_let_go(path: Path) -> None:
    async with Service(api_keys_file=str(path)) as service:
        body = {"samples": [[1.0]]}
        await service.accepted("POST", "/observe?stream=s", json=body, headers={"X-API-Key": "k-ops"})
        watcher, other = Watcher(service, key="k-ops"), Watcher(service, key="k-ops")
        assert [await watcher.status(), await other.status()] == [200, 200]
        write(path, line("new", "k-new"))
        await service.app.state.service.key_watch.look()
        service.registry.worker.subscriptions.notify_all()
        for one in (watcher, other):
            await one.ended()


BROKEN = {
    "cut off": '{"name": "ops", "sha2',
    "empty": "",
    "comments only": "# nothing\n\n",
    "a key as it is": "itan_secret",
    "other scope": line("a", "k", "write"),
    "no scope": '{"name": "a", "sha256": "%s", "scopes": []}' % ("0" * 64),
    "no digest": line("a", "k").replace(digest_of("k").hex(), "itan_secret"),
    "digest of capitals": line("a", "k").replace(digest_of("k").hex(), digest_of("k").hex().upper()),
    "other field": line("a", "k", "read", stream="a*"),
    "other limit": line("a", "k", "read", limits={"sample": "1/second"}),
    "rate without a time": line("a", "k", "read", limits={"samples": "100"}),
    "rate of nothing": line("a", "k", "read", limits={"samples": "0/second"}),
    "rate that no counter holds": line("a", "k", "read", limits={"samples": f"{2**60}/second"}),
    "fewer than none": line("a", "k", "read", limits={"streams": -1}),
    "half a stream": line("a", "k", "read", limits={"streams": 1.5}),
    "pattern": line("a", "k", "read", streams="a*b"),
    "no streams": line("a", "k", "read", streams=""),
    "name like a place": line("2", "k"),
    "name that ends a line": line("a\n", "k"),
    "one name twice": line("a", "k") + "\n" + line("a", "l"),
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
async def test_a_broken_file_keeps_the_keys_and_says_so(
    path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Service(api_keys_file=str(path)) as service:
        watch = service.app.state.service.key_watch
        good = write(path.with_name("good"), *GOOD)
        write(path, text)
        for _ in range(3):
            await watch.look()
        assert await status(service, "k-ops") == 200
        assert await service.metric("itan_api_keys_file_broken") == 1
        assert any(
            "ITAN_API_KEYS_FILE" in warning for warning in (await service.accepted("GET", "/readyz"))["warnings"]
        )
        told = [record for record in caplog.records if record.levelname == "ERROR"]
        assert len(told) == 1
        assert "itan_secret" not in caplog.text
        good.replace(path)
        await watch.look()
        assert await service.metric("itan_api_keys_file_broken") == 0
        assert len((await service.accepted("GET", "/readyz"))["warnings"]) == 1  # of the store


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
async def test_a_broken_file_stops_the_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidKeys, match="ITAN_API_KEYS_FILE") as refused:
        Service(api_keys_file=str(write(tmp_path / "keys", text)))
    assert "itan_secret" not in str(refused.value)


async def test_a_file_that_goes_keeps_the_keys_until_it_is_back(path: Path, tmp_path: Path) -> None:
    async with Service(api_keys_file=str(path)) as service:
        watch = service.app.state.service.key_watch
        move(path, tmp_path / "kept")
        await watch.look()
        assert await status(service, "k-ops") == 200
        assert await service.metric("itan_api_keys_file_broken") == 1
        move(tmp_path / "kept", path)
        await watch.look()
        assert await service.metric("itan_api_keys_file_broken") == 0


def test_no_file_stops_the_start_and_a_file_allows_listening(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidKeys, match="No such file"):
        Service(api_keys_file=str(tmp_path / "none"))
    with pytest.raises(OpenBindRefused):
        Settings(host="0.0.0.0", api_keys_file="").refuse_open_bind()
    Settings(host="0.0.0.0", api_keys_file=str(path)).refuse_open_bind()


async def test_a_secret_of_kubernetes_is_swapped_by_its_folder(tmp_path: Path) -> None:
    """The file is a link to ..data/keys, and ..data one to a folder with a time in its name, which is replaced."""

    def put(folder: str, text: str) -> None:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "keys").write_text(text)
        (tmp_path / "..new").symlink_to(folder)
        (tmp_path / "..new").replace(tmp_path / "..data")

    put("..2026_1", line("one", "k-one"))
    path = tmp_path / "keys"
    path.symlink_to("..data/keys")
    async with Service(api_keys_file=str(path)) as service:
        put("..2026_2", line("two", "k-two"))
        # of the same size, and of the same time to the nanosecond
        os.utime(path, ns=((tmp_path / "..2026_1" / "keys").stat().st_mtime_ns,) * 2)
        await service.app.state.service.key_watch.look()
        assert [await status(service, key) for key in ("k-one", "k-two")] == [401, 200]


def test_many_keys_cost_a_request_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are looked up: no request compares itself with each of them. Cookies name their key for this."""
    lines = [line(f"n{i}", f"k{i}", "read") for i in range(10_000)]
    many = KeyRing([])
    many.take(KeyFile(write(tmp_path / "keys", *lines)).read())
    assert many.opened_by("k9999")[0].name == "n9999"
    compared: list[str] = []

    def compare(given: str, wanted: str) -> bool:
        compared.append(given)
        return compare_digest(given, wanted)

    monkeypatch.setattr("app.tickets.hmac.compare_digest", compare)
    ticket = many.ticket(many.opened_by("k5000"), 60)
    request = Request({"type": "http", "headers": [(b"cookie", f"{COOKIE}={ticket}".encode())]})
    assert [grant.name for grant in many.signed_in(request)] == ["n5000"]
    assert len(compared) == 1


def test_a_key_with_two_lines_may_do_what_either_allows(tmp_path: Path) -> None:
    lines = (line("a", "k", "read"), line("b", "k", "admin", streams="ci-*"))
    grants = KeyFile(write(tmp_path / "keys", *lines)).read()
    ring = KeyRing([])
    ring.take(grants)
    assert [grant.name for grant in ring.opened_by("k")] == ["a", "b"]
    assert any(grant.allows(Scope.ADMIN, "ci-1") for grant in ring.opened_by("k"))
