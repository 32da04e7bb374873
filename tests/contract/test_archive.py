"""Files in a folder, and in a bucket of a real S3 server, behave alike."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from app.storage import ArchiveUnavailable
from app.storage.archive import ArchiveFiles, ArchiveMissing, open_archive
from tests.processes import find_free_port, wait_until

AWS = {
    "AWS_ACCESS_KEY_ID": "someone",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
}


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """The address of an S3 server with a bucket."""
    port = find_free_port()
    words = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: makes_bucket(f"{url}/archive"))
        yield url
    finally:
        server.kill()
        server.wait()


def makes_bucket(url: str) -> bool:
    try:
        return httpx2.put(url).status_code == 200
    except httpx2.TransportError:
        return False


@pytest.fixture(params=["folder", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArchiveFiles:
    if request.param == "folder":
        return open_archive(f"file://{tmp_path}/new/archive")
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3_url"))
    return open_archive(f"s3://archive/{tmp_path.name}")


async def test_credentials_name_the_server_too(s3_url):
    files = open_archive("s3://archive/named", AWS | {"AWS_ENDPOINT_URL": s3_url})
    await files.write("a", b"0123")
    assert await files.read("a", 1, 2) == b"12"


async def test_files_are_written_whole_and_read_in_parts(files):
    await files.write("log/stream=a:b.c/1-x.block", b"0123456789")
    assert await files.read("log/stream=a:b.c/1-x.block", 2, 3) == b"234"
    await files.write("log/stream=a:b.c/1-x.block", b"abc")
    assert await files.read("log/stream=a:b.c/1-x.block", 0, 3) == b"abc"
    assert await files.read("log/stream=a:b.c/2-x.block", 0, 3) is None


async def test_files_are_listed_by_their_folder_and_erased(files):
    names = [f"log/stream=s/{number}.block" for number in range(3)]
    for name in (*names, "log/stream=s.2/0.block"):
        await files.write(name, b"x")
    assert sorted(await files.names("log/stream=s")) == names
    assert await files.names("log/stream=none") == []
    await files.erase([*names[:2], "log/stream=s/none.block"])
    assert await files.names("log/stream=s") == names[2:]
    await files.erase([])
    assert await files.read("log/stream=s.2/0.block", 0, 1) == b"x"


async def test_a_server_that_is_away_is_unavailable(monkeypatch):
    for name, value in {**AWS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{find_free_port()}"}.items():
        monkeypatch.setenv(name, value)
    files = open_archive("s3://archive/x")
    with pytest.raises(ArchiveUnavailable, match="the archive: "):
        await files.write("a", b"x")
    with pytest.raises(ArchiveUnavailable) as error:
        await files.read("a", 0, 1)
    assert "\n" not in str(error.value)


async def test_a_folder_that_is_gone_or_full_is_unavailable(tmp_path):
    files = open_archive(str(tmp_path / "archive"))
    (tmp_path / "archive").rmdir()
    (tmp_path / "archive").write_text("in the way")
    with pytest.raises(ArchiveUnavailable):
        await files.write("a/b", b"x")


@pytest.mark.parametrize("url", ["ftp://somewhere/x", "file://relative/path", "", "s3://"])
def test_places_that_cannot_be_opened_are_refused(url):
    with pytest.raises(ValueError, match="ITAN_ARCHIVE"):
        open_archive(url)


def test_without_its_packages_it_says_which_extra_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ArchiveMissing, match="extra `archive`"):
        open_archive(str(tmp_path))
