"""Where archived files lie: a folder, or a bucket of an object store such as S3."""

import asyncio
import os
from collections import ChainMap
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from app.storage.errors import ArchiveUnavailable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

SECONDS: Final = 20.0
"""After this time without an answer the archive counts as unavailable."""
ERASED_TOGETHER: Final = 1000


class ArchiveMissing(ValueError):
    """The packages of the extra `archive` are not installed."""

    def __init__(self) -> None:
        super().__init__("ITAN_ARCHIVE needs packages that are not installed: install itan with its extra `archive`")


class ArchiveFiles:
    """Files by name in a folder or a bucket. Each method may raise ArchiveUnavailable."""

    def __init__(self, objects: "ObjectStore", folder: Path | None) -> None:
        self._objects, self._folder = objects, folder

    async def write(self, name: str, body: bytes) -> None:
        """Write a file, in place of another; it is there completely or not at all, and on the disk."""
        import obstore

        async with _wrapped():
            await obstore.put_async(self._objects, name, body)
            if self._folder is not None:
                await asyncio.to_thread(_sync, self._folder, name)

    async def read(self, name: str, start: int, size: int) -> bytes | None:
        """Read a part of a file; None if there is no such file."""
        import obstore

        async with _wrapped():
            try:
                return bytes(await obstore.get_range_async(self._objects, name, start=start, length=size))
            except FileNotFoundError:
                return None

    async def names(self, folder: str) -> list[str]:
        """List the files in a folder, and in those in it."""
        import obstore

        async with _wrapped():
            return [found["path"] for found in await obstore.list(self._objects, folder).collect_async()]

    async def erase(self, names: Sequence[str]) -> None:
        """Remove files, those that there are."""
        import obstore

        async with _wrapped():
            for start in range(0, len(names), ERASED_TOGETHER):
                try:
                    await obstore.delete_async(self._objects, names[start : start + ERASED_TOGETHER])
                except FileNotFoundError:
                    for name in names[start : start + ERASED_TOGETHER]:
                        await self._erase_one(name)

    async def _erase_one(self, name: str) -> None:
        import obstore

        try:
            await obstore.delete_async(self._objects, name)
        except FileNotFoundError:
            return


def open_archive(url: str, credentials: Mapping[str, str] = MappingProxyType({})) -> ArchiveFiles:
    """Open the folder or bucket of a URL: a path, file:///path, s3://bucket/prefix, gs://..., az://...

    Credentials and the endpoint are those given, and those of the environment, by the names that obstore knows
    (AWS_ENDPOINT_URL, ...).
    Raises ArchiveMissing without the packages, ValueError for a URL that nothing can open.
    """
    try:
        import obstore
        import pyarrow  # noqa: F401 (writes the files)
    except ImportError as error:
        raise ArchiveMissing from error
    place = urlsplit(url)
    if place.scheme in ("", "file"):
        return _open_folder(Path(unquote(place.path)), place.netloc)
    config: Any = dict(credentials)  # of which cloud, the URL says
    is_plain = ChainMap(config, os.environ).get("AWS_ENDPOINT_URL", "").startswith("http://")
    options: ClientConfig = {"timeout": f"{SECONDS:g}s", "connect_timeout": "5s", "allow_http": is_plain}
    retries: RetryConfig = {"max_retries": 2, "retry_timeout": timedelta(seconds=SECONDS)}
    try:
        store = obstore.store.from_url(url, config=config, client_options=options, retry_config=retries)
    except Exception as error:
        raise ValueError(f"ITAN_ARCHIVE: {_first_line(error)}") from error
    return ArchiveFiles(store, None)


def _open_folder(folder: Path, host: str) -> ArchiveFiles:
    from obstore.store import LocalStore

    if host or not folder.parts:
        raise ValueError("ITAN_ARCHIVE: a folder is a path, or file:///absolute/path")
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"ITAN_ARCHIVE: cannot make the folder {folder}: {error.strerror}") from error
    return ArchiveFiles(LocalStore(folder), folder)


def _sync(root: Path, name: str) -> None:
    """Wait until a file and the folders that lead to it are on the disk."""
    path = root / name
    for place in (path, *(parent for parent in path.parents if parent.is_relative_to(root))):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@asynccontextmanager
async def _wrapped() -> AsyncIterator[None]:
    """Raise ArchiveUnavailable for what goes wrong, and for what takes too long."""
    from obstore.exceptions import BaseError

    try:
        async with asyncio.timeout(SECONDS):
            yield
    except (BaseError, OSError) as error:
        reason = f"no answer within {SECONDS:g} seconds" if isinstance(error, TimeoutError) else _first_line(error)
        raise ArchiveUnavailable(reason) from error


def _first_line(error: BaseException) -> str:
    """Give what an error says, without the lines for the library's own developers."""
    return str(error).partition("\n")[0] or type(error).__name__
