"""`itan streams import FOLDER`: make the results of a backfill streams of a service."""

import sys
from pathlib import Path
from typing import Final

from app.commands.connection import fail
from app.commands.progress import progress
from app.counts import counted
from itan_client import ApiError, Client

# of one stream; the others may be taken
REFUSALS: Final = (403, 409, 413, 422)


def import_folder(client: Client, folder: Path, url: str) -> None:
    """Make the images in a folder streams."""
    try:
        from app.bulk.importing import ImageFolder, Refused
    except ModuleNotFoundError:
        raise fail("an import of a folder needs pyarrow: install itan with the extra bulk") from None

    def send(stream: str, image: bytes) -> None:
        try:
            client.import_(stream, image)
        except ApiError as error:
            if error.status not in REFUSALS:
                raise
            raise Refused(str(error)) from None

    images = ImageFolder(folder)
    imported = images.imported
    try:
        with progress("streams", images.count()) as done:
            images.import_to(url, send, done)
    finally:
        before = f", {imported.before} were imported before" if imported.before else ""
        print(f"{counted(imported.now, 'stream')} imported{before}")
        for stream, said in imported.refused.items():
            print(f"itan: {stream} was refused: {said}", file=sys.stderr)
    if imported.refused:
        raise fail(f"{counted(len(imported.refused), 'stream')} refused")
